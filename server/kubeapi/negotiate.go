package kubeapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	typeJSON = "application/json"
	typeYAML = "application/yaml"
)

// media is the form an answer takes.
type media struct {
	yaml, pretty bool
	// as is the kind the answer is converted to, "" for none, of version in
	// group.
	as, group, version string
}

// The kinds that objects are converted to.
const (
	asTable       = "Table"
	asPartial     = "PartialObjectMetadata"
	asPartialList = "PartialObjectMetadataList"
	asDiscovery   = "APIGroupDiscoveryList"
)

// contentType is that of an answer in this form.
func (m media) contentType() string {
	if m.yaml {
		return typeYAML
	}
	return typeJSON
}

// forObjects takes what objects can be converted to.
func (m media) forObjects() bool {
	switch m.as {
	case asTable, asPartial, asPartialList:
		return m.group == metav1.GroupName && (m.version == "v1" || m.version == "v1beta1")
	}
	return m.as == "" && m.group == "" && m.version == ""
}

// forStreams are those of them that can be streamed.
func (m media) forStreams() bool { return m.forObjects() && !m.yaml }

// forDiscovery takes what the list of groups can be given as.
func (m media) forDiscovery() bool {
	if m.as == asDiscovery {
		return m.group == "apidiscovery.k8s.io" && (m.version == "v2" || m.version == "v2beta1")
	}
	return m.as == "" && m.group == "" && m.version == ""
}

func plain(m media) bool { return m.as == "" && m.group == "" && m.version == "" }

// negotiate chooses the first form that the client accepts and allowed takes.
// A client that prefers protobuf or CBOR gets JSON if it accepts that too. As at
// the API server, weights only order the forms: one of 0 does not refuse its form.
func negotiate(r *http.Request, allowed func(media) bool) (media, error) {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if header == "" {
		header = "*/*"
	}
	for _, clause := range goautoneg.ParseAccept(header) {
		yaml := clause.Type == "application" && clause.SubType == "yaml"
		json := clause.Type == "*" || clause.Type == "application" && (clause.SubType == "*" || clause.SubType == "json")
		stream := clause.Params["stream"]
		if !json && !yaml || stream != "" && stream != "watch" {
			continue
		}
		m := media{
			yaml: yaml, pretty: isPretty(r) || clause.Params["pretty"] == "1",
			as: clause.Params["as"], group: clause.Params["g"], version: clause.Params["v"],
		}
		if allowed(m) {
			return m, nil
		}
	}
	return media{}, statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: %s, %s", typeJSON, typeYAML)
}

// isPretty: browsers and curl get indented JSON unless they say otherwise.
func isPretty(r *http.Request) bool {
	if values := r.URL.Query()["pretty"]; len(values) > 0 {
		pretty, _ := strconv.ParseBool(values[0])
		return pretty
	}
	agent := r.UserAgent()
	for _, human := range []string{"curl", "Wget", "Mozilla/5.0"} {
		if strings.HasPrefix(agent, human) {
			return true
		}
	}
	return false
}
