package rawjson

import "fmt"

func checkNamed(p Path) (Path, error) {
	if p.IsZero() {
		return p, fmt.Errorf("the path is empty")
	}
	return p, nil
}
