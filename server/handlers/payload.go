package handlers

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

// digest stands for what is delivered of an object.
type digest uint64

const (
	// untold: nothing was delivered of it.
	untold digest = 0
	// unsure: something may have been delivered. It differs from every state, so that the
	// newest one is delivered whatever it is.
	unsure digest = 1
)

// payloadOf is what is sent of an object: JSON, and its digest. The resourceVersion of the
// object is not part of the digest, so that a write that changes nothing is no change; its
// uid is, so that another object of the same name is one. The salt of the handler is, too: a
// digest is so short that who writes objects could find two states with the same one, and
// change from one to the other unseen, if they could compute it.
func payloadOf(o *cache.Object, fields *rawjson.Projection, salt []byte) ([]byte, digest, error) {
	json, err := sentOf(o, fields)
	if err != nil {
		return nil, untold, err
	}
	return json, digestOf(salt, o.UID(), json), nil
}

func sentOf(o *cache.Object, fields *rawjson.Projection) ([]byte, error) {
	json, err := o.JSON()
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	if fields != nil {
		if json, err = fields.Append(nil, json); err != nil {
			return nil, fmt.Errorf("take fields: %w", err)
		}
	}
	return json, nil
}

func digestOf(salt []byte, uid string, json []byte) digest {
	h := sha256.New()
	h.Write(salt)
	h.Write([]byte(uid))
	h.Write([]byte{0})
	if start, end, ok := rawjson.Member(json, "metadata", "resourceVersion"); ok {
		h.Write(json[:start])
		json = json[end:]
	}
	h.Write(json)
	d := digest(binary.BigEndian.Uint64(h.Sum(nil)))
	if d <= unsure {
		d += 2
	}
	return d
}
