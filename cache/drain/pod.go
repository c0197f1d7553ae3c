package drain

import "github.com/informerd/informerd/cache"

// pod is what is needed of one.
type pod struct {
	key      cache.Key
	Metadata struct {
		Labels            map[string]string
		Annotations       map[string]string
		DeletionTimestamp string
		OwnerReferences   []owner
	}
	Spec struct {
		NodeName string
		Volumes  []struct{ EmptyDir *struct{} }
	}
	Status struct {
		Phase      string
		Conditions []struct{ Type, Status string }
	}
}

type owner struct {
	Kind, Name, UID string
	Controller      bool
}

func readPod(o *cache.Object) (*pod, error) {
	p := &pod{key: o.Key()}
	return p, read(o, p)
}

// controller is what made the pod and makes it again; nil if there is none.
func (p *pod) controller() *owner {
	for i := range p.Metadata.OwnerReferences {
		if o := &p.Metadata.OwnerReferences[i]; o.Controller {
			return o
		}
	}
	return nil
}

func (p *pod) ended() bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }

func (p *pod) ready() bool {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True" && p.Metadata.DeletionTimestamp == ""
		}
	}
	return false
}

func (p *pod) hasEmptyDir() bool {
	for _, v := range p.Spec.Volumes {
		if v.EmptyDir != nil {
			return true
		}
	}
	return false
}
