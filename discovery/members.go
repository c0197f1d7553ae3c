package discovery

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// surveyed is how many questions of each kind a survey asks.
	surveyed = 4
	// mixedFor is how long servers that were found to differ are taken to differ
	// still. One that is being restarted does not answer for a while, and the
	// others agree meanwhile.
	mixedFor = time.Minute
)

// members are the API servers behind the address of a cluster. During an upgrade
// they are of different versions, and each tells only what it serves itself: what
// one of them lacks is not gone. A balancer hands out connections, so every
// question of a survey has one of its own, while looks that follow each other
// share theirs and may all meet the same server.
//
// It belongs to the looker's goroutine.
type members struct {
	client   *client
	fetcher  *fetcher
	log      *slog.Logger
	differed time.Time // when they were last found to; zero: never
	mixed    bool      // they differed within mixedFor
}

func newMembers(c *client, log *slog.Logger) *members {
	return &members{client: c, fetcher: newFetcher(c), log: log}
}

// survey asks for versions, and for what is served if they differ or there are
// doubted resources: about those the servers have to agree with ans. It returns
// the other answers to judge, which there are only while servers differ. Questions
// that fail are left out, as one of the servers may be down; if all do, that is
// an error.
func (m *members) survey(ctx context.Context, ans answer, doubted []schema.GroupResource, legacy bool) ([]answer, error) {
	versions, err := ask(func() (string, error) {
		version, err := m.client.serverVersion(ctx)
		if err != nil && !versionNeeded(err) {
			return "", nil
		}
		return version, err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(versions)
	versions = slices.Compact(versions)
	differ := len(versions) > 1
	var answers []answer
	if !legacy && (differ || m.mixed || len(doubted) > 0) {
		answers, err = ask(func() (answer, error) {
			a, _, err := m.fetcher.fetch(ctx)
			return a, err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, a := range answers {
		differ = differ || slices.ContainsFunc(doubted, func(gr schema.GroupResource) bool {
			return a.preferred(gr) != ans.preferred(gr)
		})
	}
	m.note(differ, versions)
	if !m.mixed {
		return nil, nil
	}
	return answers, nil
}

// ask collects the answers to the same question, of which some may fail.
func ask[A any](question func() (A, error)) (answers []A, err error) {
	for range surveyed {
		a, failure := question()
		if failure != nil {
			err = failure
			continue
		}
		answers = append(answers, a)
	}
	if len(answers) > 0 {
		err = nil
	}
	return answers, err
}

// note draws the conclusion of a survey, and tells it when it is another one.
func (m *members) note(differ bool, versions []string) {
	now := time.Now()
	if differ {
		m.differed = now
	}
	mixed := !m.differed.IsZero() && now.Sub(m.differed) < mixedFor
	switch {
	case mixed && !m.mixed:
		m.log.Info("API servers that answer differ, keeping what one of them lacks", "versions", versions)
	case m.mixed && !mixed:
		m.log.Info("API servers that answer agree again", "versions", versions)
	}
	m.mixed = mixed
}

// preferred is the first version of gr that can be watched, "" if there is none.
func (a answer) preferred(gr schema.GroupResource) string {
	for _, g := range a.groups {
		if g.name != gr.Group {
			continue
		}
		for _, v := range g.versions {
			if slices.ContainsFunc(v.resources, func(s served) bool { return s.name == gr.Resource && s.watchable() }) {
				return v.name
			}
		}
	}
	return ""
}
