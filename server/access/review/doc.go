// Package review asks the API server what somebody may, by SubjectAccessReview, as
// each of its authorizers would decide. What somebody holds the roles for, as far as
// informerd knows, only says where asking is worth while: RBAC proposes, the API
// server disposes.
//
// An answer counts for a few seconds. When the API server cannot be asked after that,
// nobody may do anything: every error of this package means that it is not known.
package review
