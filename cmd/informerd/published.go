package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/server/access/authn"
)

// An API server publishes whom it believes, for servers that stand in for it, in this
// ConfigMap.
const (
	publishedNamespace = "kube-system"
	publishedName      = "extension-apiserver-authentication"
)

// follow takes over what the cluster publishes, where the configuration names nothing
// else, and says when to look again.
func (d *door) follow(ctx context.Context) time.Duration {
	client := d.api.Load()
	if client == nil || d.config.ClientCAFile != "" && d.config.RequestHeader != nil {
		return publishedPoll // connect wakes it
	}
	ctx, cancel := context.WithTimeout(ctx, publishedRetry)
	defer cancel()
	published, err := client.core.ConfigMaps(publishedNamespace).Get(ctx, publishedName, metav1.GetOptions{})
	if err == nil {
		err = d.takeOver(published.Data)
	}
	if ctx.Err() == nil || err == nil {
		d.troubles.Told("authorities")(err)
	}
	if err != nil {
		return publishedRetry
	}
	return publishedPoll
}

func (d *door) takeOver(data map[string]string) error {
	var errs []error
	if d.config.ClientCAFile == "" {
		_, err := d.clients.Set([]byte(data["client-ca-file"]))
		errs = append(errs, wrap("client-ca-file", err))
	}
	if d.config.RequestHeader == nil {
		errs = append(errs, d.takeOverProxy(data))
	}
	return errors.Join(errs...)
}

// takeOverProxy believes the cluster's front proxy. Its headers come first: no proxy
// must be believed by headers that are not its own.
func (d *door) takeOverProxy(data map[string]string) error {
	var h authn.Headers
	for key, to := range map[string]*[]string{
		"requestheader-allowed-names":        &h.Names,
		"requestheader-username-headers":     &h.Users,
		"requestheader-uid-headers":          &h.UIDs,
		"requestheader-group-headers":        &h.Groups,
		"requestheader-extra-headers-prefix": &h.ExtraPrefixes,
	} {
		if data[key] == "" {
			continue
		}
		if err := json.Unmarshal([]byte(data[key]), to); err != nil {
			return wrap(key, err)
		}
	}
	d.proxy.SetHeaders(h)
	_, err := d.proxy.Authorities.Set([]byte(data["requestheader-client-ca-file"]))
	return wrap("requestheader-client-ca-file", err)
}

func wrap(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of ConfigMap %s/%s: %w", key, publishedNamespace, publishedName, err)
}
