

edge.*ˆ×ÏªàÛÏª*edge.*
"
	edge.ramp°ÒÏªˆ×Ïª*	edge.ramp
"
	edge.rampˆ×ÏªàÛÏª*	edge.ramp

edge.*°ÒÏªˆ×Ïª*edge.*
(
nothing.hereˆ×ÏªàÛÏª*nothing.here