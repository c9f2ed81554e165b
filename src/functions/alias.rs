//! Other names for series.

use super::names::key;
use super::{Eval, Function, Group, NodeOrTag, Param, SeriesList};

const SERIES: Param<SeriesList> = Param::required("seriesList");
const NODES: Param<NodeOrTag> = Param::required("nodes").multiple();

pub(super) const FUNCTIONS: &[Function] = &[Function {
    name: "aliasByNode",
    aliases: &[],
    group: Group::Alias,
    doc: "Names each series by nodes of its name, counted from 0 (negative: from the end), and values of tags, joined \
          by dots. A series that is the result of functions has the nodes of the first path in it.",
    example: "aliasByNode(servers.*.cpu.user,1,-1)",
    params: &[&SERIES, &NODES],
    needs: None,
    expand: None,
    eval: Eval::Series(|call| {
        let nodes = call.args.all(&NODES);
        let named = call.series(&SERIES).into_iter().map(|s| {
            let name = key(&s, &nodes);
            s.named(name)
        });
        Ok(named.collect())
    }),
}];
