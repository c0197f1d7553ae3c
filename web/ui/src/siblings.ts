// What stands for many in a graph: objects of one kind that hang on the same one in
// the same way are one box until somebody opens it.

export interface SiblingNode {
  id: string;
  kind: string;
  resource: string;
  namespace?: string;
  name: string;
  missing?: boolean;
  unknown?: boolean;
  /** Those that it stands for. */
  members?: string[];
}

export interface SiblingEdge {
  from: string;
  to: string;
  edge: string;
  why: string;
}

/** From so many on. */
const many = 4;

export function groupId(from: string, edge: string, kind: string, resource: string): string {
  return `group ${from} ${edge} ${resource} ${kind}`;
}

export function collapse<N extends SiblingNode, E extends SiblingEdge>(graph: { root: string; nodes: N[]; edges: E[] }, open: ReadonlySet<string>): { nodes: N[]; edges: E[] } {
  const by = new Map(graph.nodes.map((n) => [n.id, n]));
  const groups = new Map<string, Set<string>>();
  for (const e of graph.edges) {
    const n = by.get(e.to);
    if (!n || !["owns", "selects", "slices", "endpoint"].includes(e.edge) || n.id === graph.root || n.missing || n.unknown) continue;
    const id = groupId(e.from, "", n.kind, n.resource);
    groups.set(id, (groups.get(id) ?? new Set()).add(n.id));
  }
  const into = new Map<string, string>();
  const made: N[] = [];
  // The largest groups first: an object is in one of them.
  for (const [id, set] of [...groups].sort((a, b) => b[1].size - a[1].size)) {
    const members = [...set].filter((m) => !into.has(m));
    if (members.length < many || open.has(id)) continue;
    const first = by.get(members[0]!)!;
    for (const m of members) into.set(m, id);
    made.push({ ...first, id, name: "", members });
  }
  if (made.length === 0) return graph;
  const edges = new Map<string, E>();
  for (const e of graph.edges) {
    const from = into.get(e.from) ?? e.from, to = into.get(e.to) ?? e.to;
    if (from !== to) edges.set(`${from} ${to} ${e.edge}`, { ...e, from, to });
  }
  return { nodes: [...graph.nodes.filter((n) => !into.has(n.id)), ...made], edges: [...edges.values()] };
}
