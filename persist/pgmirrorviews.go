package persist

import "strings"

// mirrorFunctions are what the views are made with. None of them fails, whatever it is given:
// where a rule has emptied values, a view has NULL and not an error.
var mirrorFunctions = []struct{ name, definition string }{
	{"mirror_number", `(value text) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
		SELECT CASE WHEN value ~ '^-?[0-9]{1,60}([.][0-9]{1,60})?$' THEN value::numeric END $$`},
	{"mirror_quantity", `(value text) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
		SELECT CASE
			WHEN value ~ '^[+-]?([0-9]{1,60}[.]?[0-9]{0,60}|[.][0-9]{1,60})[eE][+-]?[0-9]{1,2}$' THEN value::numeric
			WHEN value ~ '^[+-]?([0-9]{1,60}[.]?[0-9]{0,60}|[.][0-9]{1,60})([KMGTPE]i|[numkMGTPE])?$' THEN
				rtrim(value, 'numkKMGTPEi')::numeric * CASE substring(value from '[A-Za-z]+$')
					WHEN 'n' THEN 0.000000001 WHEN 'u' THEN 0.000001 WHEN 'm' THEN 0.001
					WHEN 'k' THEN 1000 WHEN 'M' THEN 1000000 WHEN 'G' THEN 1000000000 WHEN 'T' THEN 1000000000000
					WHEN 'P' THEN 1000000000000000 WHEN 'E' THEN 1000000000000000000
					WHEN 'Ki' THEN 1024 WHEN 'Mi' THEN 1048576 WHEN 'Gi' THEN 1073741824 WHEN 'Ti' THEN 1099511627776
					WHEN 'Pi' THEN 1125899906842624 WHEN 'Ei' THEN 1152921504606846976 ELSE 1 END
		END $$`},
	{"mirror_time", `(value text) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
		SELECT CASE WHEN value ~ '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?Z$'
			OR value ~ '^[0-9]{4}-(0[13-9]|1[0-2])-(29|30)T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?Z$'
			OR value ~ '^[0-9]{4}-(0[13578]|1[02])-31T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?Z$'
			OR value ~ '^[0-9]{2}([02468][48]|[13579][26]|[2468]0)-02-29T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?Z$'
			THEN value::timestamptz END $$`},
	{"mirror_elements", `(value jsonb) RETURNS SETOF jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
		SELECT jsonb_array_elements(CASE WHEN jsonb_typeof(value) = 'array' THEN value ELSE '[]'::jsonb END) $$`},
	{"mirror_keys", `(value jsonb) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
		SELECT jsonb_object_keys(CASE WHEN jsonb_typeof(value) = 'object' THEN value ELSE '{}'::jsonb END) $$`},
}

// mirrorView is one for a kind. Each has cluster, namespace unless it is of cluster scope,
// name, uid, columns of its own, labels, created_at and resource_version.
type mirrorView struct {
	name, group, resource string
	namespaced            bool
	columns               string // of o, a row of mirror_objects
	from                  string // what is joined, mostly nothing
}

func (v *mirrorView) create() string {
	var b strings.Builder
	b.WriteString(`CREATE VIEW {` + v.name + `} AS SELECT o.cluster, `)
	if v.namespaced {
		b.WriteString(`o.namespace, `)
	}
	b.WriteString(`o.name, o.uid, ` + v.columns + `, o.labels, o.created_at, o.resource_version FROM {mirror_objects} o`)
	b.WriteString(v.from + ` WHERE o."group" = '` + v.group + `' AND o.resource = '` + v.resource + `'`)
	return b.String()
}

// sqlNumber and sqlQuantity read a value of an object; sqlOr0 is for what API servers leave
// out where it is 0.
func sqlNumber(path string) string   { return `{mirror_number}(` + path + `)` }
func sqlQuantity(path string) string { return `{mirror_quantity}(` + path + `)` }
func sqlOr0(path string) string      { return `coalesce(` + sqlNumber(path) + `, 0)` }

// condition is the status of a condition.
func condition(name string) string {
	return `(SELECT c ->> 'status' FROM {mirror_elements}(o.object #> '{status,conditions}') c WHERE c ->> 'type' = '` + name + `' LIMIT 1)`
}

const templateImages = `ARRAY(SELECT c ->> 'image' FROM {mirror_elements}(o.object #> '{spec,template,spec,containers}') c) AS images`

// controller is the owner that a pod or a set is made by.
const controller = `(SELECT r ->> 'kind' FROM {mirror_elements}(o.object #> '{metadata,ownerReferences}') r WHERE r ->> 'controller' = 'true' LIMIT 1) AS owner_kind,
	(SELECT r ->> 'name' FROM {mirror_elements}(o.object #> '{metadata,ownerReferences}') r WHERE r ->> 'controller' = 'true' LIMIT 1) AS owner_name`

// mirrorViews are of the common kinds. Quantities are numbers: cores and bytes.
var mirrorViews = []mirrorView{
	{name: "mirror_pods", resource: "pods", namespaced: true, columns: `o.object #>> '{spec,nodeName}' AS node, o.object #>> '{status,phase}' AS phase,
		o.object #>> '{status,reason}' AS reason, coalesce(` + condition("Ready") + ` = 'True', false) AS ready,
		(SELECT coalesce(sum(` + sqlNumber(`c ->> 'restartCount'`) + `), 0) FROM {mirror_elements}(o.object #> '{status,containerStatuses}') c) AS restarts,
		ARRAY(SELECT c ->> 'image' FROM {mirror_elements}(o.object #> '{spec,containers}') c) AS images, o.object #>> '{status,qosClass}' AS qos_class,
		o.object #>> '{status,podIP}' AS ip, o.object #>> '{spec,serviceAccountName}' AS service_account, ` + controller + `,
		o.object #>> '{metadata,deletionTimestamp}' IS NOT NULL AS deleting`},
	{name: "mirror_containers", resource: "pods", namespaced: true, columns: `c.of ->> 'name' AS container, c.init, c.of ->> 'image' AS image,
		` + sqlQuantity(`c.of #>> '{resources,requests,cpu}'`) + ` AS cpu_request, ` + sqlQuantity(`c.of #>> '{resources,requests,memory}'`) + ` AS memory_request,
		` + sqlQuantity(`c.of #>> '{resources,limits,cpu}'`) + ` AS cpu_limit, ` + sqlQuantity(`c.of #>> '{resources,limits,memory}'`) + ` AS memory_limit,
		o.object #>> '{spec,nodeName}' AS node, o.object #>> '{status,phase}' AS phase,
		coalesce(s.of ->> 'ready' = 'true', false) AS ready, ` + sqlOr0(`s.of ->> 'restartCount'`) + ` AS restarts,
		coalesce(s.of #>> '{state,waiting,reason}', s.of #>> '{state,terminated,reason}') AS reason`,
		from: ` CROSS JOIN LATERAL (SELECT e AS of, false AS init FROM {mirror_elements}(o.object #> '{spec,containers}') e
			UNION ALL SELECT e, true FROM {mirror_elements}(o.object #> '{spec,initContainers}') e) c
		LEFT JOIN LATERAL (SELECT e AS of FROM {mirror_elements}(o.object #> CASE WHEN c.init THEN '{status,initContainerStatuses}'::text[] ELSE '{status,containerStatuses}'::text[] END) e
			WHERE e ->> 'name' = c.of ->> 'name' LIMIT 1) s ON true`},
	{name: "mirror_nodes", resource: "nodes", columns: `coalesce(` + condition("Ready") + ` = 'True', false) AS ready,
		coalesce(o.object #>> '{spec,unschedulable}' = 'true', false) AS unschedulable, o.object #>> '{status,nodeInfo,kubeletVersion}' AS kubelet_version,
		o.object #>> '{status,nodeInfo,osImage}' AS os_image, o.object #>> '{status,nodeInfo,architecture}' AS architecture,
		` + sqlQuantity(`o.object #>> '{status,allocatable,cpu}'`) + ` AS cpu_allocatable, ` + sqlQuantity(`o.object #>> '{status,allocatable,memory}'`) + ` AS memory_allocatable,
		` + sqlQuantity(`o.object #>> '{status,allocatable,pods}'`) + ` AS pods_allocatable, o.labels ->> 'topology.kubernetes.io/zone' AS zone`},
	{name: "mirror_namespaces", resource: "namespaces", columns: `o.object #>> '{status,phase}' AS phase`},
	{name: "mirror_deployments", group: "apps", resource: "deployments", namespaced: true, columns: sqlNumber(`o.object #>> '{spec,replicas}'`) + ` AS replicas,
		` + sqlOr0(`o.object #>> '{status,readyReplicas}'`) + ` AS ready, ` + sqlOr0(`o.object #>> '{status,updatedReplicas}'`) + ` AS updated,
		` + sqlOr0(`o.object #>> '{status,availableReplicas}'`) + ` AS available, coalesce(o.object #>> '{spec,paused}' = 'true', false) AS paused, ` + templateImages},
	{name: "mirror_statefulsets", group: "apps", resource: "statefulsets", namespaced: true, columns: sqlNumber(`o.object #>> '{spec,replicas}'`) + ` AS replicas,
		` + sqlOr0(`o.object #>> '{status,readyReplicas}'`) + ` AS ready, ` + sqlOr0(`o.object #>> '{status,updatedReplicas}'`) + ` AS updated, ` + templateImages},
	{name: "mirror_daemonsets", group: "apps", resource: "daemonsets", namespaced: true, columns: sqlOr0(`o.object #>> '{status,desiredNumberScheduled}'`) + ` AS replicas,
		` + sqlOr0(`o.object #>> '{status,numberReady}'`) + ` AS ready, ` + sqlOr0(`o.object #>> '{status,updatedNumberScheduled}'`) + ` AS updated, ` + templateImages},
	{name: "mirror_jobs", group: "batch", resource: "jobs", namespaced: true, columns: sqlNumber(`o.object #>> '{spec,completions}'`) + ` AS completions,
		` + sqlOr0(`o.object #>> '{status,active}'`) + ` AS active, ` + sqlOr0(`o.object #>> '{status,succeeded}'`) + ` AS succeeded, ` + sqlOr0(`o.object #>> '{status,failed}'`) + ` AS failed,
		coalesce(` + condition("Complete") + ` = 'True', false) AS complete, {mirror_time}(o.object #>> '{status,completionTime}') AS completed_at, ` + controller},
	{name: "mirror_services", resource: "services", namespaced: true, columns: `o.object #>> '{spec,type}' AS service_type, o.object #>> '{spec,clusterIP}' AS cluster_ip,
		o.object #> '{spec,selector}' AS selector, o.object #> '{spec,ports}' AS ports`},
	{name: "mirror_endpointslices", group: "discovery.k8s.io", resource: "endpointslices", namespaced: true, columns: `o.labels ->> 'kubernetes.io/service-name' AS service,
		(SELECT count(*) FROM {mirror_elements}(o.object -> 'endpoints') e) AS endpoints,
		(SELECT count(*) FROM {mirror_elements}(o.object -> 'endpoints') e WHERE coalesce(e #>> '{conditions,ready}', 'true') = 'true') AS ready`},
	{name: "mirror_persistentvolumeclaims", resource: "persistentvolumeclaims", namespaced: true, columns: `o.object #>> '{status,phase}' AS phase,
		o.object #>> '{spec,volumeName}' AS volume, o.object #>> '{spec,storageClassName}' AS storage_class,
		` + sqlQuantity(`o.object #>> '{spec,resources,requests,storage}'`) + ` AS storage_request`},
	{name: "mirror_configmaps", resource: "configmaps", namespaced: true, columns: `ARRAY(SELECT {mirror_keys}(o.object -> 'data') UNION SELECT {mirror_keys}(o.object -> 'binaryData') ORDER BY 1) AS keys`},
	{name: "mirror_events", resource: "events", namespaced: true, columns: `o.object ->> 'type' AS event_type, o.object ->> 'reason' AS reason, o.object ->> 'message' AS message,
		o.object #>> '{involvedObject,kind}' AS object_kind, o.object #>> '{involvedObject,name}' AS object_name, o.object #>> '{involvedObject,namespace}' AS object_namespace,
		` + sqlNumber(`coalesce(o.object ->> 'count', o.object #>> '{series,count}')`) + ` AS count,
		{mirror_time}(coalesce(o.object ->> 'lastTimestamp', o.object #>> '{series,lastObservedTime}', o.object ->> 'eventTime')) AS last_seen`},
}
