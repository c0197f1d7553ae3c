// Package search finds objects of all kinds by words: of their names,
// namespaces, kinds, labels, images, annotations and configured texts.
//
// Distinct texts are kept once, with the objects that have them, under the
// words they are made of. What a word of a question finds are texts, and by
// them objects; nothing is scanned but what begins with the letters typed.
// Texts that siblings have in common are a set, which each of them has.
//
// It refuses to rank by anything a reader of the answer could not see: an
// object is higher because its name matches better, not because of statistics.
// Those would tell of objects that a reader may not see; of these nothing is found,
// counted or shown.
package search
