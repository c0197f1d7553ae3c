package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/klauspost/compress/gzip"
)

// How full lists are asked for: the encodings, and in pages.
const (
	plainList  = "identity"
	packedList = "gzip"
	pagedList  = "pages" // plain, a page after the other
)

// lists are what full lists of all pods took, each time, in one encoding.
type lists struct {
	first  []float64 // seconds until the first byte was there
	wall   []float64 // seconds until all were
	cpu    []float64 // seconds of CPU of informerd
	growth []float64 // bytes of anonymous memory more than before, at most
}

// allPods is the list that kubectl and informers ask for.
const allPods = "/api/v1/pods"

// fullLists measures lists of all pods as the Kubernetes API has them. Who reads them only counts
// bytes, so that what is measured is informerd and not its client; what they say is looked at
// once before. It begins with a process at rest, so that no garbage of before makes room for what
// lists add to its memory.
func (l *large) fullLists(ctx context.Context, i *informerd) error {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, ReadBufferSize: 1 << 20}}
	defer client.CloseIdleConnections()
	logf("full lists of all pods")
	l.lists = map[string]*lists{plainList: {}, packedList: {}, pagedList: {}}
	if err := l.pagedList(ctx, client, i); err != nil {
		return fmt.Errorf("list in pages: %w", err)
	}
	if err := l.checkLists(ctx, client, i); err != nil {
		return err
	}
	for range l.rounds {
		for _, encoding := range []string{plainList, packedList} {
			if err := l.fullList(ctx, client, i, encoding, l.lists[encoding]); err != nil {
				return fmt.Errorf("full list, %s: %w", encoding, err)
			}
		}
	}
	return nil
}

// listPage is how many pods kubectl and informers have in a page.
const listPage = 500

// pagedList lists all pods page by page: what that adds to the memory of a process at rest is what
// a full list, which holds no more than a page at a time, is compared with.
func (l *large) pagedList(ctx context.Context, client *http.Client, i *informerd) error {
	growth, err := watchGrowth(i.pid())
	if err != nil {
		return err
	}
	defer growth()
	pods := newRoster(l.pods)
	var body []byte
	for next, more := "", true; more; {
		query := url.Values{"limit": {fmt.Sprint(listPage)}, "continue": {next}}
		if body, err = fetch(ctx, client, body, i.url+allPods+"?"+query.Encode()); err != nil {
			return err
		}
		if err := pods.readList(bytes.NewReader(body)); err != nil {
			return err
		}
		next, more = stringAfter(body[:min(len(body), 1000)], `"continue":"`)
		more = more && next != ""
	}
	if pods.left > 0 {
		return fmt.Errorf("%d of %d pods are missing", pods.left, l.pods.Count)
	}
	l.lists[pagedList].growth = []float64{growth()}
	return nil
}

// checkLists fails if a list lacks a pod, or says something else when it is packed. It notes how
// many bytes of JSON a list has.
func (l *large) checkLists(ctx context.Context, client *http.Client, i *informerd) error {
	plain, err := l.checkList(ctx, client, i, plainList)
	if err != nil {
		return err
	}
	packed, err := l.checkList(ctx, client, i, packedList)
	if err == nil && plain != packed {
		err = fmt.Errorf("a full list has %d bytes and %d with gzip, or other ones", plain.bytes, packed.bytes)
	}
	l.listBytes = plain.bytes
	return err
}

// digest is what two streams with the same bytes have in common.
type digest struct {
	bytes int64
	sum   uint32
}

func (l *large) checkList(ctx context.Context, client *http.Client, i *informerd, encoding string) (d digest, err error) {
	body, err := openList(ctx, client, i.url+allPods, encoding)
	if err != nil {
		return d, err
	}
	defer body.Close()
	from := io.Reader(body)
	if encoding == packedList {
		if from, err = gzip.NewReader(body); err != nil {
			return d, fmt.Errorf("full list: %w", err)
		}
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	counted := &countingReader{from: io.TeeReader(from, sum)}
	pods := newRoster(l.pods)
	if err := pods.readList(counted); err != nil {
		return d, err
	}
	if pods.left > 0 {
		return d, fmt.Errorf("full list: %d of %d pods are missing", pods.left, l.pods.Count)
	}
	if _, err := io.Copy(io.Discard, counted); err != nil { // what follows the list
		return d, err
	}
	return digest{counted.bytes, sum.Sum32()}, nil
}

// countingReader counts what is read through it.
type countingReader struct {
	from  io.Reader
	bytes int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.bytes += int64(n)
	return n, err
}

// openList asks for a list in an encoding, and fails if it comes in another one.
func openList(ctx context.Context, client *http.Client, url, encoding string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", encoding)
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if got := resp.Header.Get("Content-Encoding"); resp.StatusCode != http.StatusOK || (got == packedList) != (encoding == packedList) {
		resp.Body.Close()
		return nil, fmt.Errorf("get %s: %s, in encoding %q", url, resp.Status, got)
	}
	return resp.Body, nil
}

// fullList measures one list, from a process that is quiet.
func (l *large) fullList(ctx context.Context, client *http.Client, i *informerd, encoding string, of *lists) error {
	cpu, err := settle(ctx, i.pid(), 0.1, time.Minute)
	if err != nil {
		return err
	}
	growth, err := watchGrowth(i.pid())
	if err != nil {
		return err
	}
	defer growth()
	start := time.Now()
	body, err := openList(ctx, client, i.url+allPods, encoding)
	if err != nil {
		return err
	}
	defer body.Close()
	read, first, err := drain(body, start)
	took := time.Since(start).Seconds()
	if err != nil {
		return err
	}
	if encoding == plainList && read != l.listBytes {
		return fmt.Errorf("it has %d bytes, and had %d before", read, l.listBytes)
	}
	after, err := cpuSeconds(i.pid())
	if err != nil {
		return err
	}
	of.first, of.wall, of.cpu = append(of.first, first.Seconds()), append(of.wall, took), append(of.cpu, after-cpu)
	of.growth = append(of.growth, growth())
	return nil
}

// drain reads a body into the same memory again and again, and says how many bytes there were, and
// when after start the first one.
func drain(body io.Reader, start time.Time) (read int64, first time.Duration, err error) {
	buf := make([]byte, 1<<20)
	for {
		n, err := body.Read(buf)
		if read == 0 && n > 0 {
			first = time.Since(start)
		}
		read += int64(n)
		if errors.Is(err, io.EOF) {
			return read, first, nil
		}
		if err != nil {
			return read, first, fmt.Errorf("after %d bytes: %w", read, err)
		}
	}
}

// rate is how many bytes a second there were, by the seconds that each round took.
func rate(bytes int64, seconds []float64) []float64 {
	var all []float64
	for _, s := range seconds {
		all = append(all, float64(bytes)/max(s, 1.0/ticksPerSecond))
	}
	return all
}

// watchGrowth looks at the anonymous memory of a process until stop, which returns how much more
// there was than now, at most.
func watchGrowth(pid int) (stop func() float64, err error) {
	before, err := statusBytes(pid, "RssAnon")
	if err != nil {
		return nil, err
	}
	most := watchAnonymous(pid)
	return func() float64 { return max(0, most()-before) }, nil
}

// listRows are of the full lists.
func (l *large) listRows() []Row {
	var rows []Row
	for _, encoding := range []string{plainList, packedList} {
		of, what := l.lists[encoding], "full list of all pods"
		if encoding == packedList {
			what += ", gzip"
		}
		ours := func(samples []float64) Figure { return newFigure("informerd", samples) }
		rows = append(rows,
			Row{What: what + ": JSON for each second of CPU", Unit: unitRate, Ours: ours(rate(l.listBytes, of.cpu)), Bar: atLeast(listRate), Constant: true},
			Row{What: what + ": JSON for each second", Unit: unitRate, Ours: ours(rate(l.listBytes, of.wall)), Constant: true},
			Row{What: what + ": until its first byte", Unit: unitSeconds, Ours: ours(of.first)},
			Row{What: what + ": anonymous memory that it adds", Unit: unitBytes, Ours: worst("informerd", of.growth), Constant: true,
				Peer: newFigure(fmt.Sprintf("informerd, in pages of %d", listPage), l.lists[pagedList].growth)})
	}
	return rows
}

// listRate is how many bytes of JSON a second one core is to answer with, packed or not.
const listRate = 300e6
