package server

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// formatVersions writes name=version pairs, for the id of events, with the marks of the
// rights that they were seen by.
func formatVersions(versions, marks map[string]string) string {
	var pairs []string
	for name, version := range versions {
		pair := name + "=" + cmp.Or(version, void)
		if mark := marks[name]; mark != "" && version != void {
			pair += markSeparator + mark
		}
		pairs = append(pairs, pair)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

func parseVersions(id string) (versions, marks map[string]string, err error) {
	versions, marks = map[string]string{}, map[string]string{}
	if id == "" {
		return versions, marks, nil
	}
	for pair := range strings.SplitSeq(id, ",") {
		name, version, ok := strings.Cut(pair, "=")
		version, mark, _ := strings.Cut(version, markSeparator)
		since, err := parseVersionText("", version)
		if !ok || name == "" || version == "" || err != nil {
			return nil, nil, invalid("Last-Event-ID", "%q is not the id of an event of this stream: want name=version pairs", fmt.Sprintf("%.100s", id))
		}
		versions[name], marks[name] = since, mark
	}
	return versions, marks, nil
}
