// Package gate makes the access.Asker of each request: who asks, as each cluster
// knows them, and what they may there. Who somebody is in one cluster says nothing of
// who they are in another: a token is shown to the API server of every cluster that
// the request is about, and where it is not known its bearer is nobody, and sees
// nothing.
package gate
