package main

import (
	"errors"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/informerd/informerd/test/postgres/installed"
	"github.com/informerd/informerd/test/standin"
)

// TestSQL: PostgreSQL answers each question as the pods were made for it.
func TestSQL(t *testing.T) {
	programs, err := installed.Find()
	if errors.Is(err, installed.ErrNone) && os.Getenv(installed.Folder) == "" {
		t.Skipf("%v: make postgres installs it", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := startDatabase(t.Context(), programs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
	l := &large{bench: &bench{options: options{rounds: 1}, data: &dataset{Pods: 3000}}, pods: standin.NewPods(3000)}
	l.questions = slices.Concat(questions, lookups(l.pods))
	if l.answers, err = expected(l.pods, l.questions); err != nil {
		t.Fatal(err)
	}
	tables := &tables{took: map[string][]float64{}}
	if err := errors.Join(l.fill(t.Context(), d), l.query(t.Context(), d, tables)); err != nil {
		t.Fatal(err)
	}
	for _, q := range l.questions {
		if f := tables.peer(q.name); !f.exists() || f.Value <= 0 {
			t.Errorf("question %s took %+v", q.name, f)
		}
	}
	if n, err := d.number(t.Context(), "SELECT count(*) FROM pods WHERE data @? '$.metadata.managedFields'"); err != nil || n != 0 {
		t.Errorf("%v pods have managedFields (%v)", n, err)
	}
	if n, err := d.number(t.Context(), "SELECT pg_relation_size('pods_data')"); err != nil || n == 0 {
		t.Errorf("the index has %v bytes (%v)", n, err)
	}
}

func TestQuestionWithoutSQL(t *testing.T) {
	if _, err := inSQL(question{name: "why"}); err == nil {
		t.Error("an unknown question has words")
	}
}

func TestReadRows(t *testing.T) {
	row := func(texts ...string) (row [][]byte) {
		for _, text := range texts {
			row = append(row, []byte(text))
		}
		return row
	}
	for name, c := range map[string]struct {
		read func([][][]byte) (answer, error)
		rows [][][]byte
		want answer // nil: an error
	}{
		"pods":            {readPodRows, [][][]byte{row(`{"metadata":{"namespace":"a","name":"b"},"spec":{}}`)}, answer{"a/b": 1}},
		"parts of pods":   {readPodRows, [][][]byte{row(`{"metadata":{"namespace":"a","name":"b"}}`)}, nil},
		"no JSON":         {readPodRows, [][][]byte{row(`b`)}, nil},
		"value":           {readValueRow("count()", 1), [][][]byte{row("7")}, answer{"count()": 7}},
		"quantity":        {readValueRow("sum", thousandths), [][][]byte{row("12.6")}, answer{"sum": 12600}},
		"no value":        {readValueRow("sum", thousandths), nil, nil},
		"no number":       {readValueRow("sum", thousandths), [][][]byte{row("")}, nil},
		"groups":          {readImageRows, [][][]byte{row("a", "x", "2", "0.150")}, answer{"a x count()": 2, "a x sum(spec.containers[*].resources.requests.cpu)": 150}},
		"order":           {readOrderRows, [][][]byte{row("a", "c"), row("a", "b")}, answer{"a/c": 1, "a/b": 2}},
		"order of what":   {readOrderRows, [][][]byte{row("a")}, nil},
		"counts":          {readCountRows, [][][]byte{row("image x", "2")}, answer{"image x": 2}},
		"counts of what":  {readCountRows, [][][]byte{row("2")}, nil},
		"no counts":       {readCountRows, [][][]byte{row("image x", "")}, nil},
		"groups in parts": {readImageRows, [][][]byte{row("a", "x", "2")}, nil},
	} {
		got, err := c.read(c.rows)
		if (err != nil) != (c.want == nil) || err == nil && !maps.Equal(got, c.want) {
			t.Errorf("%s: %v (%v), want %v", name, got, err, c.want)
		}
	}
}

func TestTablesLeftOut(t *testing.T) {
	var none *tables
	if none.peer("filter").exists() || len(none.rows()) > 0 {
		t.Error("what was left out has figures")
	}
}
