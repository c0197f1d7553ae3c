package health

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/informerd/informerd/cache/rawjson"
)

// quota is bad when one of its resources is used up: what needs more of it is refused. A
// quota of nothing forbids on purpose.
func quota(o *object) (h Health) {
	used := o.status.Get("used")
	hard := o.status.Get("hard")
	if len(hard) == 0 || hard.Kind() != rawjson.Object {
		return Health{}
	}
	full := int64(0)
	for parts := hard.Parts(); ; {
		key, plain, v, ok := parts.Next()
		if !ok {
			break
		}
		name := rawjson.KeyText(key, plain)
		limit, use := text(v), text(used.Get(name))
		if !usedUp(use, limit) {
			continue
		}
		if full++; full == 1 {
			h = Health{Status: Bad, Reason: "QuotaExhausted", Message: fmt.Sprintf("%s of %s %s are used", use, limit, name)}
		}
	}
	if full > 1 {
		h.Message += fmt.Sprintf(", and all of %s more", several(full-1, "resource"))
	}
	return h
}

func usedUp(use, limit string) bool {
	have, err := resource.ParseQuantity(use)
	if err != nil || have.Sign() <= 0 {
		return false
	}
	most, err := resource.ParseQuantity(limit)
	return err == nil && most.Sign() > 0 && have.Cmp(most) >= 0
}
