// Package fair shares what there is of a process among those who ask it: processors,
// by turns, and places for requests, by owners. Whoever asks for much waits for whoever
// asks for little, and never the other way round.
//
// It knows nothing of what is asked, nor who may ask it.
package fair
