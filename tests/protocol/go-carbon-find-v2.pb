
dual.*
	dual.node
	dual.node