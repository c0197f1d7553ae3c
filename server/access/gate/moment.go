package gate

import (
	"context"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// oneMoment is for how long what one request asks about rights is answered as of one moment.
// A question about all resources of a cluster asks a hundred times, and to look each time
// whether roles are the same costs more than the answer.
const oneMoment = 10 * time.Millisecond

// moment holds the Rights of one user as of when they were asked for first, for one request.
// It is safe for concurrent use.
type moment struct {
	began time.Time

	mu     sync.Mutex // guards rights
	rights Rights
}

func (m *moment) over(now time.Time) bool { return m == nil || now.Sub(m.began) >= oneMoment }

type momentKey struct{}

// in is ctx with a moment. What is asked under it is asked about one user.
func (m *moment) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, momentKey{}, m)
}

// rightsOf are those of u, as of the moment of ctx if it has one.
func (b ByRoles) rightsOf(ctx context.Context, u user.Info) (Rights, error) {
	m, ok := ctx.Value(momentKey{}).(*moment)
	if !ok {
		return b.Roles(ctx, u)
	}
	m.mu.Lock()
	rights := m.rights
	m.mu.Unlock()
	if rights != nil {
		return rights, nil
	}
	// Nobody waits here for somebody who waits for the roles.
	rights, err := b.Roles(ctx, u)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rights == nil {
		m.rights = rights
	}
	return m.rights, nil
}
