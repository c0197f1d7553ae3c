package rawjson

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func inBase64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func inLines(text string) string {
	var lines []string
	for ; len(text) > 76; text = text[76:] {
		lines = append(lines, text[:76])
	}
	return strings.Join(append(lines, text), "\n")
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// secretCopies are annotations that hold a Secret, or its data.
func secretCopies() map[string]string {
	const (
		object  = `{"apiVersion":"v1","data":{"password":"aHVzaA=="},"kind":"Secret","metadata":{"name":"s"}}`
		indent  = "{\n  \"apiVersion\": \"v1\",\n  \"stringData\" : {\n    \"password\": \"hush\"\n  }\n}"
		asYAML  = "apiVersion: v1\ndata:\n  password: aHVzaA==\nkind: Secret\n"
		nothing = `{"kind": "Secret", "metadata": {"name": "s"}}`
	)
	copies := map[string]string{
		"JSON": object, "indented JSON": indent, "YAML": asYAML, "kind alone": nothing,
		"YAML of strings": "---\nstringData: {password: hush}\n", "YAML in quotes": "\"data\":\n  a: b\n", "YAML's kind": "metadata: {}\nkind: 'Secret'\n",
		"YAML like JSON": "{apiVersion: v1, data: {password: aHVzaA==}}", "a list": "[" + object + "]", "a list in YAML": "- apiVersion: v1\n  data:\n    a: b\n",
		"within": `{"applied":{"object":` + object + `}}`, "data alone": `{"data":{"password":"aHVzaA=="}}`,
		"quoted": `{"original":` + quoted(object) + `}`, "quoted twice": `{"a":` + quoted(`{"original":`+quoted(indent)+`}`) + `}`, "a string": quoted(object),
		"a patch": `[{"op":"replace","path":"/data/password","value":"aHVzaA=="}]`, "a patch of all": `[{"op": "add", "path": "/stringData", "value": {}}]`,
		"base64 without padding": strings.TrimRight(inBase64(object+" "), "="), "base64 for URLs": base64.URLEncoding.EncodeToString([]byte(object + "???>>>")),
		"base64 in lines": inLines(inBase64(object)), "base64 twice": inBase64(inBase64(object)), "YAML as base64": inBase64(asYAML),
		"compressed": inBase64(gzipped(object)), "compressed YAML": inBase64(gzipped(asYAML)), "compressed twice": inBase64(gzipped(inBase64(gzipped(object)))),
		"cut off": inBase64(gzipped(object)[:40]), "a bomb": inBase64(gzipped(strings.Repeat(" ", maxUnpacked+1))),
	}
	return copies
}

func TestSecretCopies(t *testing.T) {
	p, err := Compile(Spec{Drop: []Path{SecretCopies}, Extract: []Path{mustPath("metadata.annotations['a']")}})
	if err != nil {
		t.Fatal(err)
	}
	run := func(annotations string) (string, *Document) {
		t.Helper()
		var doc Document
		if err := p.Run(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Secret","metadata":{"annotations":{%s},"name":"s"}}`, annotations), &doc); err != nil {
			t.Fatal(err)
		}
		return string(doc.AppendJSON(nil, "", "")), &doc
	}
	for name, value := range secretCopies() {
		got, doc := run(`"a":` + quoted(value) + `,"b":"c"`)
		if want := `{"apiVersion":"v1","kind":"Secret","metadata":{"annotations":{"b":"c"},"name":"s"}}`; got != want || len(doc.Values) != 0 {
			t.Errorf("%s:\n%s\nis kept: %s, %v", name, value, got, doc.Values)
		}
		if got, _ := run(`"b":"c","a":` + quoted(value)); !strings.Contains(got, `{"b":"c"}`) {
			t.Errorf("%s as the last one: %s", name, got)
		}
		if got, _ := run(`"b":` + quoted(value) + `,"a":` + quoted(value)); !strings.Contains(got, `"annotations":{}`) {
			t.Errorf("%s alone: %s", name, got)
		}
	}
	for _, value := range []string{
		"", "true", "data", "Secret", "the data is elsewhere", "see data, and Secrets: no", "https://example.com/data/x?kind=Secret", "{}", "[]", `{"namespace":"a","name":"s"}`,
		`{"kind":"SecretClass","dataset":"x"}`, `{"metadata":{"name":"data"}}`, "kind: SealedSecret\nmetadata: {}\n", "database: x\n", inBase64("just a text that is long enough"),
		"d290-8a1f-4e5b-9c7d", `["data"]`, `{"type":"data"}`, "metadata:\n  name: s\n", inBase64(gzipped(`{"name":"s"}`)),
	} {
		got, doc := run(`"a":` + quoted(value))
		if !strings.Contains(got, `"a":`) || len(doc.Values) != 1 {
			t.Errorf("%q is dropped: %s", value, got)
		}
	}
	// Without it all stay.
	if p, err = Compile(Spec{}); err != nil {
		t.Fatal(err)
	}
	if got, _ := run(`"a":` + quoted(secretCopies()["JSON"])); !strings.Contains(got, `"a":`) {
		t.Errorf("nothing is to be dropped: %s", got)
	}
}
