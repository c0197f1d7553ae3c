package replica

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request, namespace string, initial bool) {
	q := r.URL.Query()
	from, _ := strconv.Atoi(q.Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	flush := w.(http.Flusher).Flush
	send := func(kind string, object string) {
		fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", kind, object)
	}
	f.mu.Lock()
	cut := f.cut
	if initial {
		for _, o := range f.objects {
			if namespace == "" || o.key.Namespace == namespace {
				send("ADDED", o.json())
			}
		}
		from = f.version
		send("BOOKMARK", fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}`, from))
	} else if from < f.compacted {
		send("ERROR", statusJSON(http.StatusGone, "Expired"))
		f.mu.Unlock()
		return
	}
	f.mu.Unlock()
	flush()
	timeout := time.After(time.Minute)
	if q.Get("timeoutSeconds") == fmt.Sprint(provingTimeout) {
		timeout = time.After(100 * time.Millisecond) // tests are impatient
	}
	for {
		f.mu.Lock()
		if f.cut != cut {
			f.mu.Unlock()
			panic(http.ErrAbortHandler)
		}
		for _, e := range f.log {
			if e.version <= from {
				continue
			}
			from = e.version
			if namespace != "" && e.object.key.Namespace != namespace {
				continue
			}
			if f.mute > 0 {
				f.mute--
				continue
			}
			send(string(e.kind), e.object.json())
		}
		wake := f.wake
		f.mu.Unlock()
		flush()
		select {
		case <-wake:
		case <-r.Context().Done():
			return
		case <-timeout:
			f.mu.Lock()
			version := f.version
			f.mu.Unlock()
			send("BOOKMARK", fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}`, max(from, version)))
			return
		}
	}
}
