import type { KubeObject } from "../api";
import { quantity } from "../format";
import { healthRank, toneOfHealth, type Health } from "../health";
import { each, formatPath, parsePath, textOf, valuesAt, type Step } from "../paths";

// The columns of a table: which fields they need, what they show of an object,
// how they sort. A cell is kept as text or number, never as the object it came
// from: a hundred thousand rows fit in memory that way.

export type Cell = string | number | null;
export type Tone = "good" | "wait" | "bad" | "off" | "";

export interface Column {
  /** What the address and the memory call it. */
  id: string;
  title: string;
  /** Fields that value() looks at. */
  paths: string[];
  value: (o: KubeObject) => Cell;
  /** text sorts as text, number and time (ms) as numbers, age is a time shown as an age. */
  type: "text" | "number" | "age";
  tone?: (text: string) => Tone;
  /** The path by which the server orders as the column does, if it can. */
  by?: string;
  /** Sorts by this instead of by what is shown. */
  rank?: (cell: Cell) => number;
  hint?: string;
}

const metadata = ["metadata.name", "metadata.namespace", "metadata.uid", "metadata.creationTimestamp", "metadata.deletionTimestamp"];

/** Fields that every row needs, whatever its columns. */
export const rowPaths = metadata;

export const nameColumn: Column = { id: "name", title: "Name", paths: [], by: "metadata.name", type: "text", value: (o) => o.metadata.name };
export const namespaceColumn: Column = { id: "namespace", title: "Namespace", paths: [], by: "metadata.namespace", type: "text", value: (o) => o.metadata.namespace ?? "" };
export const kindColumn: Column = { id: "kind", title: "Kind", paths: [], type: "text", value: () => "" };
export const clusterColumn: Column = { ...kindColumn, id: "cluster", title: "Cluster" };
export const ageColumn: Column = {
  id: "age", title: "Age", paths: [], by: "metadata.creationTimestamp", type: "age",
  value: (o) => Date.parse(String(o.metadata.creationTimestamp)) || null,
};

/** How an object is, as informerd works it out: rows are told, no field has it. */
export const healthColumn: Column = {
  id: "health", title: "Health", paths: [], type: "text", value: () => "", rank: (c) => healthRank(String(c ?? "")),
  tone: (t) => (t ? (toneOfHealth[t.split(":")[0] as Health] as Tone) : ""), hint: "how it is, and why",
};

/** Kinds that cannot be well or unwell: they are what somebody wrote down. */
const inert = /^(configmaps|secrets|serviceaccounts|endpoints|endpointslices|limitranges|priorityclasses|events|leases|controllerrevisions|podtemplates|ipaddresses|servicecidrs|csi\w+|storageclasses|ingressclasses|runtimeclasses|networkpolicies|(cluster)?role(binding)?s|flowschemas|prioritylevelconfigurations|componentstatuses)(\.|$)/;

export function hasHealth(resource: string): boolean {
  return !inert.test(resource);
}

/** A path with at most one value; by others the server would order differently. */
function single(path: string): string | undefined {
  return path.includes("[*]") ? undefined : path;
}

function text(title: string, path: string, more: Partial<Column> = {}): Column {
  const steps = parsePath(path);
  return {
    id: title.toLowerCase().replace(/ /g, "-"), title, paths: [path], by: single(path), type: "text", hint: path,
    value: (o) => valuesAt(o, steps).map(textOf).join(","),
    ...more,
  };
}

function number(title: string, path: string, more: Partial<Column> = {}): Column {
  const steps = parsePath(path);
  return {
    id: title.toLowerCase().replace(/ /g, "-"), title, paths: [path], by: single(path), type: "number", hint: path,
    value: (o) => {
      const v = valuesAt(o, steps)[0];
      return typeof v === "number" ? v : v === undefined ? null : quantity(String(v));
    },
    ...more,
  };
}

function made(title: string, paths: string[], value: (o: KubeObject) => Cell, more: Partial<Column> = {}): Column {
  return { id: title.toLowerCase().replace(/ /g, "-"), title, paths, value, type: "text", ...more };
}

/** A time shown as the age since then. */
function since(title: string, path: string): Column {
  const steps = parsePath(path);
  // What is no time has no place in an order.
  return made(title, [path], (o) => Date.parse(String(valuesAt(o, steps)[0])) || null, { type: "age", by: single(path), hint: path });
}

/** Reads a text once, however often it is compared: few differ in a column. */
function remembering(read: (text: string) => number): (c: Cell) => number {
  const known = new Map<string, number>();
  return (c) => {
    const text = String(c);
    let n = known.get(text);
    if (n === undefined) {
      if (known.size > 10_000) known.clear();
      known.set(text, (n = read(text)));
    }
    return n;
  };
}

const byQuantity = remembering((text) => quantity(text) ?? 0);

/** "1/3": the first of the second, short ones first when sorted. */
function ratio(title: string, paths: string[], of: (o: KubeObject) => [number, number]): Column {
  return made(title, paths, (o) => of(o).join("/"), {
    rank: remembering((text) => {
      const [a, b] = text.split("/").map(Number) as [number, number];
      return b ? a / b : 1;
    }),
    tone: (t) => {
      const [a, b] = t.split("/").map(Number) as [number, number];
      return a < b ? "wait" : "";
    },
  });
}

const bad = /^(Failed|Error|Err\w+|.*BackOff|Crash\w*|OOMKilled|Evicted|Unknown|NotReady|Lost|Init:.*(Error|BackOff|OOM).*|.*Error|Invalid\w*|False|ContainerStatusUnknown|.*Exceeded|.*Unavailable|Degraded|.*Missing|.*NotFound)/;
const wait = /^(Pending|Terminating|ContainerCreating|PodInitializing|Init:|Released|Progressing|Unschedulable|SchedulingGated|Suspended|.*,SchedulingDisabled)/;
const good = /^(Running|Ready|Active|Bound|Available|True|Complete|Healthy|Established)/;
const off = /^(Completed|Succeeded)/;

/** What a word of a status column means, for its color. */
export function toneOf(word: string): Tone {
  if (!word) return "";
  if (bad.test(word)) return "bad";
  if (wait.test(word)) return "wait";
  if (off.test(word)) return "off";
  return good.test(word) ? "good" : "";
}

interface Container {
  name?: string;
  ready?: boolean;
  restartCount?: number;
  state?: { waiting?: { reason?: string }; terminated?: { reason?: string; exitCode?: number; signal?: number }; running?: object };
}

/** The word that kubectl shows for a pod. */
export function podStatus(o: KubeObject): string {
  const s = (o.status ?? {}) as { phase?: string; reason?: string; initContainerStatuses?: Container[]; containerStatuses?: Container[]; conditions?: { type: string; status: string; reason?: string }[] };
  let word = s.reason || s.phase || "";
  for (const c of s.conditions ?? []) if (c?.type === "PodScheduled" && c.reason === "SchedulingGated") word = "SchedulingGated";
  let initializing = false;
  const inits = s.initContainerStatuses ?? [];
  for (const [i, c] of inits.entries()) {
    const t = c?.state?.terminated;
    if (t && t.exitCode === 0) continue;
    if (c?.state?.running && c.ready) continue; // a sidecar that runs
    if (t) word = "Init:" + (t.reason || (t.signal ? `Signal:${t.signal}` : `ExitCode:${t.exitCode}`));
    else if (c?.state?.waiting?.reason && c.state.waiting.reason !== "PodInitializing") word = "Init:" + c.state.waiting.reason;
    else word = `Init:${i}/${inits.length}`;
    initializing = true;
    break;
  }
  if (!initializing) {
    let running = false;
    for (const c of [...(s.containerStatuses ?? [])].reverse()) {
      const { waiting, terminated } = c?.state ?? {};
      if (waiting?.reason) word = waiting.reason;
      else if (terminated) word = terminated.reason || (terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode}`);
      else if (c?.ready && c.state?.running) running = true;
    }
    if (word === "Completed" && running) word = "Running";
  }
  if (o.metadata.deletionTimestamp) return s.reason === "NodeLost" ? "Unknown" : "Terminating";
  return word;
}

function containers(o: KubeObject): Container[] {
  return ((o.status?.containerStatuses ?? []) as Container[]).filter(Boolean);
}

/** A word for how any object is, from the fields that most kinds have. */
export function anyStatus(o: KubeObject): string {
  if (o.metadata.deletionTimestamp) return "Terminating";
  if (o.status?.containerStatuses || o.status?.initContainerStatuses) return podStatus(o);
  const conditions = (o.status?.conditions ?? []) as { type: string; status: string; reason?: string }[];
  for (const type of ["Failed", "Complete", "Ready", "Available", "Healthy", "Established", "Accepted", "Programmed", "Synced"]) {
    const c = conditions.find((c) => c?.type === type);
    if (!c) continue;
    if (type === "Failed" || type === "Complete") {
      if (c.status === "True") return type;
      continue;
    }
    if (c.status === "True") return type;
    return c.reason && c.reason !== type ? c.reason : "Not" + type;
  }
  const phase = o.status?.phase ?? o.status?.state;
  if (typeof phase === "string") return phase;
  const wanted: unknown = o.spec?.replicas;
  if (typeof wanted !== "number" || !o.status) return "";
  const ready = Number(o.status.readyReplicas ?? 0);
  return ready < wanted ? `NotReady ${ready}/${wanted}` : wanted ? "Ready" : "Scaled to zero";
}

const anyStatusPaths = ["spec.replicas", "status.readyReplicas", "status.phase", "status.state", "status.reason", "status.conditions[*].type", "status.conditions[*].status", "status.conditions[*].reason",
  "status.containerStatuses[*].state", "status.containerStatuses[*].ready", "status.initContainerStatuses[*].state", "status.initContainerStatuses[*].ready"];
export const statusColumn: Column = made("Status", anyStatusPaths, anyStatus, {
  tone: (t) => toneOf(t) || (t.startsWith("Not") ? "bad" : ""),
});

const pods: Column[] = [
  ratio("Ready", ["status.containerStatuses[*].ready", "spec.containers[*].name"], (o) => [
    containers(o).filter((c) => c.ready).length,
    (o.spec?.containers as unknown[] | undefined)?.length ?? 0,
  ]),
  made("Status", ["status.phase", "status.reason", "status.conditions[*].type", "status.conditions[*].reason", "status.conditions[*].status",
    "status.containerStatuses[*].state", "status.initContainerStatuses[*].state", "status.initContainerStatuses[*].ready"], podStatus, { tone: toneOf }),
  made("Restarts", ["status.containerStatuses[*].restartCount"], (o) => containers(o).reduce((n, c) => n + (c.restartCount ?? 0), 0), { type: "number" }),
  text("Node", "spec.nodeName"),
  text("IP", "status.podIP"),
];
// Ready "1/1" of a pod that has completed is no trouble: its status says so.

const images = (path = "spec.template.spec.containers[*].image") => text("Images", path);

function replicas(title: string): Column {
  return ratio(title, ["status.readyReplicas", "spec.replicas"], (o) => [o.status?.readyReplicas ?? 0, o.spec?.replicas ?? 1]);
}

function ports(o: KubeObject): string {
  return ((o.spec?.ports ?? []) as { port: number; nodePort?: number; protocol?: string }[])
    .map((p) => `${p.port}${p.nodePort ? ":" + p.nodePort : ""}/${p.protocol ?? "TCP"}`).join(",");
}

function keys(title: string, ...fields: string[]): Column {
  return made(title, fields, (o) => fields.reduce((n, f) => n + Object.keys((o[f] ?? {}) as object).length, 0), { type: "number" });
}

function conditionColumn(title: string, type: string): Column {
  return made(title, ["status.conditions[*].type", "status.conditions[*].status"], (o) =>
    ((o.status?.conditions ?? []) as { type: string; status: string }[]).find((c) => c?.type === type)?.status ?? "", { tone: toneOf });
}

const table: Record<string, Column[]> = {
  pods,
  nodes: [
    made("Status", ["status.conditions[*].type", "status.conditions[*].status", "spec.unschedulable"], (o) => {
      const ready = ((o.status?.conditions ?? []) as { type: string; status: string }[]).find((c) => c?.type === "Ready");
      const word = ready ? (ready.status === "True" ? "Ready" : ready.status === "Unknown" ? "Unknown" : "NotReady") : "Unknown";
      return o.spec?.unschedulable ? word + ",SchedulingDisabled" : word;
    }, { tone: (t) => (t.includes("SchedulingDisabled") ? "wait" : toneOf(t)) }),
    made("Roles", ["metadata.labels"], (o) =>
      Object.keys(o.metadata.labels ?? {}).filter((k) => k.startsWith("node-role.kubernetes.io/")).map((k) => k.slice(24)).join(",")),
    made("Zone", ["metadata.labels"], (o) => o.metadata.labels?.["topology.kubernetes.io/zone"] ?? ""),
    number("CPU", "status.allocatable.cpu"),
    text("Memory", "status.allocatable.memory", { rank: byQuantity }),
    text("Version", "status.nodeInfo.kubeletVersion"),
  ],
  "deployments.apps": [replicas("Ready"), number("Up to date", "status.updatedReplicas"), number("Available", "status.availableReplicas"), images()],
  "replicasets.apps": [replicas("Ready"), number("Desired", "spec.replicas"), images()],
  "statefulsets.apps": [replicas("Ready"), images()],
  "daemonsets.apps": [
    ratio("Ready", ["status.numberReady", "status.desiredNumberScheduled"], (o) => [o.status?.numberReady ?? 0, o.status?.desiredNumberScheduled ?? 0]),
    number("Up to date", "status.updatedNumberScheduled"), images(),
  ],
  "jobs.batch": [
    made("Status", ["status.conditions[*].type", "status.conditions[*].status", "status.active", "spec.suspend"], (o) => {
      const on = ((o.status?.conditions ?? []) as { type: string; status: string }[]).filter((c) => c?.status === "True").map((c) => c.type);
      return on.includes("Failed") ? "Failed" : on.includes("Complete") ? "Complete" : o.spec?.suspend ? "Suspended" : o.status?.active ? "Running" : "Pending";
    }, { tone: toneOf }),
    ratio("Completions", ["status.succeeded", "spec.completions"], (o) => [o.status?.succeeded ?? 0, o.spec?.completions ?? 1]), images(),
  ],
  "cronjobs.batch": [text("Schedule", "spec.schedule"), text("Suspend", "spec.suspend"), made("Active", ["status.active[*].name"], (o) => (o.status?.active as unknown[] | undefined)?.length ?? 0, { type: "number" }), since("Last run", "status.lastScheduleTime")],
  services: [
    text("Type", "spec.type"), text("Cluster IP", "spec.clusterIP"),
    made("Ports", ["spec.ports[*].port", "spec.ports[*].nodePort", "spec.ports[*].protocol"], ports),
    made("Selector", ["spec.selector"], (o) => Object.entries((o.spec?.selector ?? {}) as object).map((e) => e.join("=")).join(",")),
  ],
  "ingresses.networking.k8s.io": [text("Class", "spec.ingressClassName"), text("Hosts", "spec.rules[*].host"), text("Backends", "spec.rules[*].http.paths[*].backend.service.name")],
  configmaps: [keys("Keys", "data", "binaryData")],
  secrets: [text("Type", "type"), keys("Keys", "data")],
  namespaces: [text("Status", "status.phase", { tone: toneOf })],
  persistentvolumeclaims: [
    text("Status", "status.phase", { tone: toneOf }), text("Volume", "spec.volumeName"),
    text("Capacity", "status.capacity.storage", { rank: byQuantity }), text("Access modes", "spec.accessModes"), text("Class", "spec.storageClassName"),
  ],
  persistentvolumes: [
    text("Status", "status.phase", { tone: toneOf }), text("Capacity", "spec.capacity.storage", { rank: byQuantity }),
    made("Claim", ["spec.claimRef.namespace", "spec.claimRef.name"], (o) => (o.spec?.claimRef ? `${o.spec.claimRef.namespace}/${o.spec.claimRef.name}` : "")),
    text("Reclaim policy", "spec.persistentVolumeReclaimPolicy"), text("Class", "spec.storageClassName"),
  ],
  "storageclasses.storage.k8s.io": [text("Provisioner", "provisioner"), text("Reclaim policy", "reclaimPolicy"), text("Binding", "volumeBindingMode")],
  "horizontalpodautoscalers.autoscaling": [
    made("Target", ["spec.scaleTargetRef"], (o) => `${o.spec?.scaleTargetRef?.kind ?? ""}/${o.spec?.scaleTargetRef?.name ?? ""}`),
    number("Replicas", "status.currentReplicas"), number("Min", "spec.minReplicas"), number("Max", "spec.maxReplicas"),
  ],
  "poddisruptionbudgets.policy": [text("Min available", "spec.minAvailable"), text("Max unavailable", "spec.maxUnavailable"), number("Allowed", "status.disruptionsAllowed")],
  "networkpolicies.networking.k8s.io": [made("Pods", ["spec.podSelector"], (o) => Object.entries((o.spec?.podSelector?.matchLabels ?? {}) as object).map((e) => e.join("=")).join(",") || "all"), text("Types", "spec.policyTypes")],
  "endpointslices.discovery.k8s.io": [text("Address type", "addressType"), text("Ports", "ports[*].port"), text("Endpoints", "endpoints[*].addresses[*]")],
  endpoints: [text("Addresses", "subsets[*].addresses[*].ip")],
  events: [text("Type", "type", { tone: (t) => (t === "Warning" ? "wait" : "") }), text("Reason", "reason"), made("Object", ["involvedObject.kind", "involvedObject.name"], (o) => `${o.involvedObject?.kind ?? ""}/${o.involvedObject?.name ?? ""}`), number("Count", "count"), text("Message", "message")],
  "events.events.k8s.io": [text("Type", "type", { tone: (t) => (t === "Warning" ? "wait" : "") }), text("Reason", "reason"), made("Object", ["regarding.kind", "regarding.name"], (o) => `${o.regarding?.kind ?? ""}/${o.regarding?.name ?? ""}`), text("Message", "note")],
  "leases.coordination.k8s.io": [text("Holder", "spec.holderIdentity"), since("Renewed", "spec.renewTime")],
  serviceaccounts: [],
  "roles.rbac.authorization.k8s.io": [],
  "clusterroles.rbac.authorization.k8s.io": [],
  "rolebindings.rbac.authorization.k8s.io": [made("Role", ["roleRef"], (o) => `${o.roleRef?.kind}/${o.roleRef?.name}`), text("Subjects", "subjects[*].name")],
  "clusterrolebindings.rbac.authorization.k8s.io": [made("Role", ["roleRef"], (o) => `${o.roleRef?.kind}/${o.roleRef?.name}`), text("Subjects", "subjects[*].name")],
  "customresourcedefinitions.apiextensions.k8s.io": [text("Group", "spec.group"), text("Kind", "spec.names.kind"), text("Scope", "spec.scope"), text("Versions", "spec.versions[*].name"), conditionColumn("Established", "Established")],
  "apiservices.apiregistration.k8s.io": [
    made("Service", ["spec.service.namespace", "spec.service.name"], (o) => (o.spec?.service ? `${o.spec.service.namespace}/${o.spec.service.name}` : "Local")), conditionColumn("Available", "Available"),
  ],
  "priorityclasses.scheduling.k8s.io": [number("Value", "value"), text("Global default", "globalDefault")],
  resourcequotas: [made("Used", ["status.used", "status.hard"], (o) => Object.entries((o.status?.hard ?? {}) as object).map(([k, v]) => `${k}: ${(o.status?.used as Record<string, string>)?.[k] ?? 0}/${v}`).join(", "))],
  replicationcontrollers: [replicas("Ready")],
  "controllerrevisions.apps": [number("Revision", "revision")],
};

/** The columns of a resource between its name and its age; null: not a known one. */
export function knownColumns(resource: string): Column[] | null {
  return table[resource] ?? null;
}

interface PrinterColumn {
  name: string;
  type: string;
  jsonPath: string;
  priority?: number;
  description?: string;
}

/** The columns that a CustomResourceDefinition asks for. */
export function printerColumns(crd: KubeObject, version: string): Column[] {
  const v = ((crd.spec?.versions ?? []) as { name: string; additionalPrinterColumns?: PrinterColumn[] }[]).find((v) => v?.name === version);
  const out: Column[] = [];
  for (const c of v?.additionalPrinterColumns ?? []) {
    if (c.jsonPath === ".metadata.creationTimestamp" || (c.priority ?? 0) > 0) continue;
    let column: Column;
    try {
      const p = formatPath(parsePath(c.jsonPath));
      if (c.type === "date") column = since(c.name, p);
      else if (c.type === "integer" || c.type === "number") column = number(c.name, p);
      else column = text(c.name, p, /^(status|phase|state|ready|health)$/i.test(c.name) ? { tone: toneOf } : {});
    } catch {
      continue; // JSONPath with filters: beyond what the API's paths say
    }
    out.push({ ...column, id: c.name.toLowerCase().replace(/[ ,]/g, "-"), hint: c.description || column.hint });
  }
  return out;
}

/** A column that somebody asked for: a path, or a label as label:app. */
export function customColumn(spec: string): Column {
  if (spec.startsWith("label:")) {
    const key = spec.slice(6);
    const steps: Step[] = ["metadata", "labels", key];
    return { id: spec, title: key, paths: [formatPath(steps)], by: formatPath(steps), type: "text", value: (o) => textOf(valuesAt(o, steps)[0]), hint: "label " + key };
  }
  const steps = parsePath(spec);
  const last = [...steps].reverse().find((s) => typeof s === "string" && s !== each) as string | undefined;
  return {
    id: spec, title: last ?? spec, paths: [formatPath(steps)], by: single(formatPath(steps)), type: "text", hint: spec,
    value: (o) => {
      const found = valuesAt(o, steps);
      if (found.length === 1 && typeof found[0] === "number") return found[0];
      return found.map(textOf).join(",");
    },
  };
}

/** A column's order in the words of the server, "" where it has none. */
export function serverOrder(column: Column | undefined, down: boolean): string {
  if (!column?.by) return "";
  // Ages grow as times shrink.
  return ((column.type === "age") !== down ? "-" : "") + column.by;
}

/** Orders two cells of a column; what is missing comes last either way. */
export function compareCells(column: Column, a: Cell, b: Cell, down: boolean): number {
  const none = (c: Cell) => c === null || c === "";
  if (none(a) || none(b)) return none(a) ? (none(b) ? 0 : 1) : -1;
  let c: number;
  if (column.rank) c = column.rank(a) - column.rank(b) || order(a, b);
  else c = order(a, b);
  // Ages grow as times shrink.
  return (column.type === "age") !== down ? -c : c;
}

function order(a: Cell, b: Cell): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number") return -1;
  if (typeof b === "number") return 1;
  return a! < b! ? -1 : a! > b! ? 1 : 0;
}
