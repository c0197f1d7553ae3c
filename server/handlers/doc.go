// Package handlers delivers changes of objects: what an informer's event handlers and the
// workqueue of a controller are within a Go program, for every program and across restarts.
//
// A [Handler] is a question with a sink. The objects that it selects are its state, by key.
// For each key it is known what was delivered last, as a hash, and whether that differs from
// what the copy holds now: then the key is pending. What is delivered is always the newest
// state of a key, so that of ten changes in a row the last is enough (level-triggered, as
// controllers are). One delivery of a key is under way at a time, keys do not wait for each
// other, and a delivery that fails is tried again after a growing delay.
//
// What is promised:
//
//   - The last state of every key is delivered, a key's end included, whatever is restarted
//     or killed meanwhile: at least once.
//   - A state that was delivered is not delivered again, but for a delivery that was under
//     way, or not yet known to be saved, when the process ended.
//   - Deliveries of one key are in the order of its states. Those of different keys are in no
//     order.
//
// What is known of the keys is a ledger ([cache.LedgerChange]). It is saved before each
// snapshot, after the same events were considered, so that a copy that is restored is never
// ahead of the ledger; and between them as soon as something was delivered.
package handlers
