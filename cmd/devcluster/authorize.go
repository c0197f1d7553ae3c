package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/devcluster/internal/authorize"
)

func newAuthorizeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "authorize",
		Short: "Judge requests by roles and bindings, as the API server would",
		Long: `authorize has the RBAC authorizer of Kubernetes judge requests, without a cluster.
It reads lines of JSON from stdin. The first has the roles and bindings: roles,
clusterRoles, roleBindings and clusterRoleBindings. Each one after it is a request:
user, groups, verb, group, resource, subresource, namespace, name, or a path in place
of the resource. It is answered with a line: allowed. A line without a verb replaces
the roles and bindings.`,
		Example: `  devcluster authorize < requests.jsonl`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return authorize.Serve(cmd.Context(), os.Stdin, os.Stdout)
		},
	}
}
