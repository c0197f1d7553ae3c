package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// podsTable has one pod in a row, as jsonb in the column data.
const podsTable = "pods"

// podsSchema makes the table and what quantities need. What is not logged is not written twice,
// and toast_tuple_target has a pod that is compressed stay in its row.
var podsSchema = []string{
	`CREATE UNLOGGED TABLE pods (data jsonb NOT NULL) WITH (toast_tuple_target = 4080)`,
	`CREATE FUNCTION quantity(q text) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT CASE
	WHEN q LIKE '%Ki' THEN left(q, -2)::numeric * 1024
	WHEN q LIKE '%Mi' THEN left(q, -2)::numeric * 1048576
	WHEN q LIKE '%Gi' THEN left(q, -2)::numeric * 1073741824
	WHEN q LIKE '%m' THEN left(q, -1)::numeric * 0.001
	ELSE q::numeric
END $$`,
}

// podsIndexed is done when the pods are there.
var podsIndexed = []string{
	`CREATE INDEX pods_data ON pods USING gin (data jsonb_path_ops)`,
	`VACUUM (ANALYZE) pods`,
}

// sqlQuestion is a question as it is asked of that table.
type sqlQuestion struct {
	query string
	// read takes the answer out of the rows, in the form in which informerd's is.
	read func(rows [][][]byte) (answer, error)
}

// inSQL is a question in SQL.
func inSQL(q question) (sqlQuestion, error) {
	switch q.name {
	case "filter":
		return sqlQuestion{`SELECT data FROM pods WHERE data #>> '{status,podIP}' LIKE '%.77'`, readPodRows}, nil
	case "quantities":
		return sqlQuestion{`SELECT count(*) FROM pods WHERE (
	SELECT sum(quantity(c #>> '{resources,limits,memory}')) FROM jsonb_array_elements(data #> '{spec,containers}') c
) > quantity('0.7Gi')`, readValueRow("count()", 1)}, nil
	case "group-by":
		return sqlQuestion{`SELECT namespace, image, count(*), sum(cpu)
FROM pods
CROSS JOIN LATERAL (
	SELECT data #>> '{metadata,namespace}' AS namespace, array_agg(DISTINCT c ->> 'image') AS images, sum(quantity(c #>> '{resources,requests,cpu}')) AS cpu
	FROM jsonb_array_elements(data #> '{spec,containers}') c
) p
CROSS JOIN unnest(images) image
GROUP BY namespace, image`, readImageRows}, nil
	case "aggregate":
		return sqlQuestion{`SELECT sum(quantity(c #>> '{resources,requests,memory}'))
FROM pods, jsonb_array_elements(data #> '{spec,containers}') c`, readValueRow("sum(spec.containers[*].resources.requests.memory)", thousandths)}, nil
	case "sort":
		return sqlQuestion{fmt.Sprintf(`SELECT data #>> '{metadata,namespace}', data #>> '{metadata,name}', data FROM pods ORDER BY
	(SELECT min(quantity(c #>> '{resources,requests,cpu}')) FROM jsonb_array_elements(data #> '{spec,containers}') c),
	data #>> '{metadata,namespace}' COLLATE "C", data #>> '{metadata,name}' COLLATE "C" LIMIT %d`, firstPods), readOrderRows}, nil
	case "facets":
		return sqlQuestion{`SELECT 'spec.schedulerName ' || (data #>> '{spec,schedulerName}'), count(*) FROM pods GROUP BY data #>> '{spec,schedulerName}'
UNION ALL SELECT 'status.qosClass ' || (data #>> '{status,qosClass}'), count(*) FROM pods GROUP BY data #>> '{status,qosClass}'`, readCountRows}, nil
	case lookupApp:
		return containing(map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": q.about}}})
	case lookupAddress:
		return containing(map[string]any{"status": map[string]any{"podIP": q.about}})
	}
	return sqlQuestion{}, fmt.Errorf("question %s has no words in SQL", q.name)
}

// containing asks for pods with what is in part, which the index finds.
func containing(part map[string]any) (sqlQuestion, error) {
	text, err := json.Marshal(part)
	return sqlQuestion{fmt.Sprintf(`SELECT data FROM pods WHERE data @> '%s'`, text), readPodRows}, err
}

// readPodRows counts pods by name. A pod is in the one column of a row, as JSON.
func readPodRows(rows [][][]byte) (answer, error) {
	a := answer{}
	for _, row := range rows {
		var pod struct {
			Metadata struct{ Namespace, Name string }
			Spec     json.RawMessage
		}
		if err := json.Unmarshal(row[0], &pod); err != nil {
			return nil, err
		}
		if len(pod.Spec) == 0 {
			return nil, fmt.Errorf("pod %s is only there in parts", pod.Metadata.Name)
		}
		a[pod.Metadata.Namespace+"/"+pod.Metadata.Name]++
	}
	return a, nil
}

// readOrderRows reads the place of each pod, from 1 on: its namespace and name are in the first
// columns.
func readOrderRows(rows [][][]byte) (answer, error) {
	a := answer{}
	for i, row := range rows {
		if len(row) < 2 {
			return nil, fmt.Errorf("a pod has %d columns, and not its namespace and name", len(row))
		}
		a[string(row[0])+"/"+string(row[1])] = float64(i + 1)
	}
	return a, nil
}

// thousandths are what quantities in answers are in.
const thousandths = 1000

// readValueRow reads the one value of one row, of a column of informerd's answer.
func readValueRow(column string, unit float64) func([][][]byte) (answer, error) {
	return func(rows [][][]byte) (answer, error) {
		if len(rows) != 1 {
			return nil, fmt.Errorf("there are %d rows, and not one", len(rows))
		}
		value, err := readNumber(rows[0][0], unit)
		return answer{column: value}, err
	}
}

// readNumber reads a number in a unit, of which there are whole ones.
func readNumber(text []byte, unit float64) (float64, error) {
	value, err := strconv.ParseFloat(string(text), 64)
	return math.Round(value * unit), err
}

// readImageRows reads groups by namespace and image.
func readImageRows(rows [][][]byte) (answer, error) {
	a := answer{}
	for _, row := range rows {
		if len(row) != 4 {
			return nil, fmt.Errorf("a group has %d columns, and not 4", len(row))
		}
		group := string(row[0]) + " " + string(row[1]) + " "
		count, err := readNumber(row[2], 1)
		if err != nil {
			return nil, fmt.Errorf("count of %s: %w", group, err)
		}
		cpu, err := readNumber(row[3], thousandths)
		if err != nil {
			return nil, fmt.Errorf("CPU of %s: %w", group, err)
		}
		a[group+"count()"], a[group+"sum(spec.containers[*].resources.requests.cpu)"] = count, cpu
	}
	return a, nil
}

// readCountRows reads what is counted and how many there are.
func readCountRows(rows [][][]byte) (answer, error) {
	a := answer{}
	for _, row := range rows {
		if len(row) != 2 {
			return nil, fmt.Errorf("a count has %d columns, and not 2", len(row))
		}
		count, err := readNumber(row[1], 1)
		if err != nil {
			return nil, fmt.Errorf("count of %s: %w", row[0], err)
		}
		a[string(row[0])] = count
	}
	return a, nil
}
