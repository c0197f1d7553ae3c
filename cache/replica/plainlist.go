package replica

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/informerd/informerd/cache/rawjson"
	"github.com/klauspost/compress/gzip"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// An API server encodes the plain list of a resource object by object as of
// Kubernetes 1.33 (KEP-5116), so that it takes no more of its memory than a
// streaming list. It compresses it, too, which it does to a streaming list as of
// 1.37 at the earliest, and has no event to make of each object. Of 20,000 pods a
// plain list takes half the server's time and a twelfth of the bytes, so it is
// what a source asks for. Servers before hold the whole encoded list in memory
// and are asked for streaming lists.
var encodesByObject = utilversion.MajorMinor(1, 33)

// errPlain makes the Reflector turn from the streaming list to List. See errResume.
var errPlain = errors.New("a plain list is preferred")

// listsPlainly reports whether all objects are asked for in a plain list.
func (s *source) listsPlainly() bool {
	if s.noStreaming {
		return true
	}
	return !s.noPlain && !isUncached(s.spec.GVR.GroupResource()) && s.cluster.encodesByObject()
}

// isUncached reports whether the API server keeps no watch cache of a resource.
// It reads a plain list of it from etcd as a whole, but a streaming one in parts.
func isUncached(r schema.GroupResource) bool {
	return r.Resource == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}

// encodesByObject reports whether the API server said that it is a version that
// encodes lists object by object.
func (c *cluster) encodesByObject() bool {
	v, err := utilversion.ParseGeneric(c.status().Version)
	return err == nil && v.AtLeast(encodesByObject)
}

// plainList answers the Reflector with all objects, of the latest version: not of
// any that the server's cache may have, whatever the Reflector asks for. So the copy
// is current when it is in, and a server that lags behind another one cannot take
// it back.
//
// One list takes the place of all pages: it comes from the watch cache and is
// encoded, read and decoded piece by piece.
func (s *source) plainList(ctx context.Context, opts metav1.ListOptions) (*itemList, error) {
	opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	if !s.noStreaming {
		opts.Limit = 0
	}
	if opts.Continue == "" {
		s.begin()
	}
	ctx, answer := withAnswer(ctx)
	if s.consistent = s.begins(); s.consistent {
		ctx = consistently(ctx)
	}
	list, err := s.list(ctx, opts)
	if err == nil {
		s.asked = answer.proof(s.asked)
		s.copied = answer.ofReplica()
		return list, nil
	}
	if ctx.Err() == nil && !s.noStreaming && brokeOff(err) {
		s.log.Info("a plain list broke off, using streaming ones", "err", err)
		s.noPlain = true
	}
	s.listFailures++
	s.note(err)
	return nil, err
}

// errListCut wraps why a list broke off.
var errListCut = errors.New("list was cut")

// brokeOff reports whether a list may have met the server's limit on the time of
// a request: a minute, unless it is configured otherwise. It gives streaming
// lists half an hour and more.
func brokeOff(err error) bool {
	if errors.Is(err, errListCut) {
		return true
	}
	return apierrors.IsTimeout(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// list asks for a list, or one page of it, and decodes it while it arrives.
func (s *source) list(ctx context.Context, opts metav1.ListOptions) (*itemList, error) {
	s.selectors(&opts)
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	request := client.Get().AbsPath(s.path(s.namespace)).SpecificallyVersionedParams(&opts, metav1.ParameterCodec, metav1.SchemeGroupVersion)
	// client-go would try a 429 again ten times, each time after as long as the server
	// says, half a minute at last. Nobody would be told meanwhile, and the place among
	// the syncs would be taken: the pauses are those of retries.
	request.MaxRetries(0)
	// Asked for by hand, the answer is not unpacked by net/http, whose gzip takes
	// a quarter longer.
	body, err := request.SetHeader("Accept-Encoding", s.cluster.encoding()).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	plain, err := unpacked(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errListCut, err)
	}
	r := rawjson.NewListReader(plain, maxObjectBytes)
	out := &itemList{}
	if out.Items, err = s.decodeList(r); err != nil {
		return nil, fmt.Errorf("%w: %w", errListCut, err)
	}
	meta := r.Meta()
	out.ResourceVersion, out.Continue, out.RemainingItemCount = meta.ResourceVersion, meta.Continue, meta.RemainingItemCount
	return out, s.versioned(out.ResourceVersion)
}

// versioned refuses a list that is of no version. An API server always names one:
// what does not is no answer of it, and that it has no items says nothing. Aggregated
// APIs may have none.
func (s *source) versioned(version string) error {
	if s.spec.Aggregated {
		return nil
	}
	return checkVersion(version)
}

func checkVersion(version string) error {
	if v, err := strconv.ParseUint(version, 10, 64); err != nil || v == 0 {
		return fmt.Errorf("a list is of resourceVersion %q, which is none", version)
	}
	return nil
}

// unpacked returns what body stands for if it is gzip. JSON never begins like
// it, and servers do not compress what is small.
func unpacked(body io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(body, 64<<10)
	if magic, err := buffered.Peek(2); err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return buffered, nil
	}
	return gzip.NewReader(buffered)
}
