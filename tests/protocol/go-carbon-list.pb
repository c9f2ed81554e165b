
5_tagged.09b.073.http_DOT_requests;code=404;method=GET
@_tagged.0a0.56e.disk_DOT_used;datacenter=dc2;rack=c7;server=db11
9_tagged.300.141.disk_DOT_free;datacenter=dc2;server=web11
,_tagged.422.ee2.cpu_DOT_load;env=dev;host=h3
<_tagged.45a.ab8.cpu_DOT_load;env=prod;host=h2;role=front-end
6_tagged.5d5.574.http_DOT_requests;code=200;method=POST
5_tagged.82a.12c.http_DOT_requests;code=500;method=GET
9_tagged.830.8c9.disk_DOT_free;datacenter=dc1;server=web01
<_tagged.a2f.7a9.cpu_DOT_load;env=prod;host=h1;role=front-end
A_tagged.baa.15b.disk_DOT_used;datacenter=dc2;rack=a1;server=web11
@_tagged.c2a.ecf.disk_DOT_used;datacenter=dc1;rack=b3;server=db01
6_tagged.db4.0c2.http_DOT_requests;code=500;method=POST
5_tagged.df9.52b.http_DOT_requests;code=200;method=GET
A_tagged.e9a.90f.disk_DOT_used;datacenter=dc1;rack=a1;server=web01
A_tagged.eef.f1e.disk_DOT_used;datacenter=dc1;rack=a1;server=web02
>_tagged.fbd.6de.odd_DOT_tags;a=b=c;dotted=x_DOT_y_DOT_z;uni=ü

app.load.1
app.load.15

app.load.5
app.visits.daily
business.orders.apac
business.orders.eu
business.orders.us
business.revenue.eu
business.revenue.us
dc1.rack1.web01.disk.bytes_read
)dc1.rack1.web01.disk.sda.part1.bytes_read
)dc1.rack1.web01.disk.sda.part2.bytes_read
dc1.rack2.web02.disk.bytes_read
dc2.rack1.web03.disk.bytes_read
	dual.node
dual.node.child
edge.allnull
edge.alternating
	edge.bool
edge.const42
edge.constneg

edge.ended
edge.gap
	edge.huge
	edge.late
edge.negative
edge.periodic
	edge.prob
	edge.ramp
edge.single
edge.sparse

edge.steps
	edge.tiny

edge.zeros
	mixed.s10

mixed.s300
mixed.s3600
	mixed.s60
servers.cache_01.cpu.user
servers.db01.cpu.system
servers.db01.cpu.user
servers.db02.cpu.user
servers.web-04.cpu.user
servers.web01.cpu.idle
servers.web01.cpu.system
servers.web01.cpu.user
servers.web01.memory.free
servers.web01.memory.total
servers.web01.memory.used
servers.web01.net.eth0.rx_bytes
servers.web01.net.eth1.rx_bytes
servers.web02.cpu.idle
servers.web02.cpu.system
servers.web02.cpu.user
servers.web02.net.eth0.rx_bytes
servers.web02.net.eth1.rx_bytes
servers.web03.cpu.user
single
 stats.counters.http.errors.count
"stats.counters.http.requests.count
stats.counters.login.count
stats.gauges.queue-depth
stats.gauges.temp
stats.timers.api.count
stats.timers.api.mean
stats.timers.api.upper_90
stats.timers.db.count
stats.timers.db.mean
stats.timers.db.upper_90
weird.1.2.3
weird.UPPER.CamelCase
weird.col:on.pl+us
weird.hash#tag.x
weird.host1.val
weird.host10.val
weird.host2.val
weird.perc%25.a&b
weird.sp ace.x y
weird.with-dash.under_score
weird.ünïcödé.métric
weird.日本.メトリク