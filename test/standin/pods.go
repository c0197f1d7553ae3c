package standin

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/informerd/informerd/cache/rawjson"
)

//go:embed pod.json
var podTemplate string

// Pods are pods that are made when they are asked for: the same of the same number and
// resourceVersion. PodsOfSet in a row are of one ReplicaSet: of these all but names, addresses,
// nodes, digests and restarts is the same. Forty are on a node.
type Pods struct {
	Count int
	// first is the number of pod 0 among those of all clusters.
	first int
	// parts are text and, between two of them, what stands there in each pod.
	parts, names []string
}

// whole is how a pod begins, but for its brace, that is no item of a list.
const whole = `"apiVersion":"v1","kind":"Pod",`

var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// NewPods makes so many.
func NewPods(count int) *Pods { return podsLike(podTemplate, count) }

// WithoutManagedFields makes the pods of NewPods without what managers say of their fields.
func WithoutManagedFields(count int) *Pods {
	before, rest, _ := strings.Cut(podTemplate, `"managedFields":[`)
	_, after, _ := strings.Cut(rest, `],"name":`)
	return podsLike(before+`"name":`+after, count)
}

func podsLike(template string, count int) *Pods {
	text := strings.TrimPrefix(strings.TrimSpace(template), "{"+whole)
	return &Pods{Count: count, parts: placeholder.Split(text, -1), names: placeholder.FindAllString(text, -1)}
}

// PodsOf makes those of cluster k of many with so many pods each. Those of cluster 0 are
// NewPods, and no two clusters have a pod in common.
func PodsOf(k, count int) *Pods {
	p := NewPods(count)
	p.first = k * count
	return p
}

// mixed is a number that looks like chance, the same of the same x.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

const (
	// PodsOfSet is how many pods a ReplicaSet has.
	PodsOfSet = 50
	// PodsOfNode is how many pods a node has.
	PodsOfNode = 40
	namespaces = 1000
)

func set(i int) uint64 { return mixed(uint64(i / PodsOfSet)) }

// Namespace, Name and IP are those of pod i.
func (p *Pods) Namespace(i int) string {
	return fmt.Sprintf("team-%04d", (p.first+i)/PodsOfSet%namespaces)
}

func (p *Pods) Name(i int) string {
	i += p.first
	return fmt.Sprintf("service-%04d-%010x-%07d", i/PodsOfSet, set(i)&0xffffffffff, i)
}

func (p *Pods) IP(i int) string {
	h := mixed(uint64(p.first + i))
	return fmt.Sprintf("10.%d.%d.%d", byte(h), byte(h>>8), byte(h>>16))
}

// App is the label "app" of pod i, which the pods of its ReplicaSet have.
func (p *Pods) App(i int) string { return fmt.Sprintf("service-%04d", (p.first+i)/PodsOfSet) }

// appendDigest appends 64 digits.
func appendDigest(b []byte, of uint64) []byte {
	for range 4 {
		of = mixed(of)
		b = fmt.Appendf(b, "%016x", of)
	}
	return b
}

// Append appends pod i as it is at a version.
func (p *Pods) Append(b []byte, i, version int) []byte {
	return p.appendRest(append(b, "{"+whole...), i, version)
}

// AppendItem is Append for a list, whose items do not say what they are.
func (p *Pods) AppendItem(b []byte, i, version int) []byte {
	return p.appendRest(append(b, '{'), i, version)
}

// appendMetadata is AppendItem without spec and status.
func (p *Pods) appendMetadata(b []byte, i, version int) []byte {
	before := len(b)
	b = p.AppendItem(b, i, version)
	_, end, ok := rawjson.Member(b[before:], "metadata")
	if !ok {
		panic("a pod without metadata")
	}
	return append(b[:before+end], '}')
}

func (p *Pods) appendRest(b []byte, i, version int) []byte {
	local := i
	i += p.first
	random := mixed(uint64(i))
	digest := random
	for n, name := range p.names {
		b = append(b, p.parts[n]...)
		switch name {
		case "{version}":
			b = strconv.AppendInt(b, int64(version), 10)
		case "{name}":
			b = append(b, p.Name(local)...)
		case "{namespace}":
			b = append(b, p.Namespace(local)...)
		case "{app}":
			b = append(b, p.App(local)...)
		case "{uid}":
			b = fmt.Appendf(b, "%08x-%04x-4%03x-8%03x-%012x", uint32(random), uint16(random>>32), uint16(random>>48)&0xfff, i&0xfff, i)
		case "{owner}":
			b = fmt.Appendf(b, "%08x-0000-4000-8000-%012x", uint32(set(i)), i/PodsOfSet)
		case "{node}":
			b = fmt.Appendf(b, "node-%05d", local%max(1, p.Count/PodsOfNode))
		case "{hash}":
			b = fmt.Appendf(b, "%010x", set(i)&0xffffffffff)
		case "{ip}":
			b = append(b, p.IP(local)...)
		case "{restarts}":
			b = strconv.AppendInt(b, int64(version%7), 10)
		case "{digest}":
			digest = mixed(digest)
			b = appendDigest(b, digest)
		case "{checksum}":
			b = appendDigest(b, set(i))
		case "{limit}":
			b = append(b, []string{"320Mi", "512Mi", "640Mi", "1Gi"}[set(i)%4]...)
		case "{request}":
			b = append(b, []string{"128Mi", "256Mi", "300Mi"}[set(i)%3]...)
		case "{cpu}":
			b = append(b, []string{"50m", "100m", "250m"}[set(i)%3]...)
		case "{release}":
			b = fmt.Appendf(b, "v1.%d.0", set(i)%10)
		}
	}
	return append(b, p.parts[len(p.names)]...)
}
