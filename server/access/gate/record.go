package gate

import (
	"context"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/server/audit"
)

// record notes who asks, as the first cluster says that knows them, and whom they want to
// be, whether they may or not.
func (a *asker) record(ctx context.Context) {
	record := audit.From(ctx)
	if record == nil {
		return
	}
	for _, name := range a.about {
		if u := a.in(name).madeBy(ctx); u != nil {
			record.By(recorded(u))
			break
		}
	}
	if a.wanted != nil {
		record.As(recorded(a.wanted.Info()))
	}
}

// madeBy is who makes the request, nil if that is not known.
func (k *acquaintance) madeBy(ctx context.Context) user.Info {
	if k.lock(ctx) != nil {
		return nil
	}
	defer k.unlock()
	return k.maker
}

func recorded(u user.Info) audit.User {
	return audit.User{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
}
