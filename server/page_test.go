package server

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/informerd/informerd/web"
)

// What is sent of the page is what web/ui/scripts/size.mjs counts.
func TestPageIsCompressedWell(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Web = web.FS() })
	files, err := fs.Glob(web.FS(), "*")
	if err != nil || len(files) < 5 {
		t.Fatalf("files of the page: %v, %v", files, err)
	}
	sum := 0
	for _, file := range files {
		path := "/" + strings.TrimSuffix(file, "index.html")
		plain := w.get(t, path)
		packed := w.get(t, path, "Accept-Encoding", "deflate, gzip;q=0.8")
		if packed.Code != 200 || packed.Header().Get("Content-Encoding") != "gzip" {
			t.Fatalf("GET %s = %d %v, want gzip", path, packed.Code, packed.Header())
		}
		if packed.Header().Get("Vary") == "" || packed.Header().Get("Content-Type") != plain.Header().Get("Content-Type") {
			t.Errorf("GET %s: %v", path, packed.Header())
		}
		sum += packed.Body.Len()
		r, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(r); err != nil || !bytes.Equal(text, plain.Body.Bytes()) {
			t.Errorf("GET %s: compressed it is another file (%v)", path, err)
		}
	}
	t.Logf("%d bytes over the wire", sum)
	if sum > 75<<10 {
		t.Errorf("the page is %d bytes over the wire, want 75 KB at most", sum)
	}
}

func TestPageIsNotCompressedForWhoCannotReadThat(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Web = fstest.MapFS{"app.js": {Data: []byte(strings.Repeat("poll();", 1000))}} })
	for _, accept := range []string{"", "identity", "gzip;q=0", "br, gzip; q=0.0"} {
		rec := w.get(t, "/app.js", "Accept-Encoding", accept)
		if rec.Code != 200 || rec.Header().Get("Content-Encoding") != "" || rec.Body.Len() != 7000 {
			t.Errorf("Accept-Encoding %q = %d %v, %d bytes", accept, rec.Code, rec.Header(), rec.Body.Len())
		}
	}
	part := w.get(t, "/app.js", "Accept-Encoding", "gzip", "Range", "bytes=0-6")
	if part.Code != 206 || part.Body.String() != "poll();" {
		t.Errorf("the first 7 bytes = %d %q", part.Code, part.Body)
	}
}
