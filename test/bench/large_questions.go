package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/informerd/informerd/test/standin"
)

// repeated is how often a question is asked before what it takes counts as that of one that is
// asked again and again.
const repeated = 5

// againAsked is how often it is asked then in each round: a collection of garbage, which makes an
// answer several times as slow, takes as long as a dozen answers, and there are not many of them.
const againAsked = 10

// expected are the answers to questions. Pods of a set differ in nothing but their names and what
// questions for lists of pods are about.
func expected(pods *standin.Pods, questions []question) (map[string]answer, error) {
	all := map[string]answer{}
	for _, q := range questions {
		all[q.name] = answer{}
	}
	for i := range pods.Count {
		for _, q := range questions {
			if q.picks != nil && q.picks(pods, i) {
				all[q.name][pods.Namespace(i)+"/"+pods.Name(i)] = 1
			}
		}
	}
	for i := 0; i < pods.Count; i += standin.PodsOfSet {
		var pod corev1.Pod
		if err := json.Unmarshal(pods.Append(nil, i, 1), &pod); err != nil {
			return nil, err
		}
		of := min(standin.PodsOfSet, pods.Count-i)
		for _, q := range questions {
			switch {
			case q.picks != nil:
			case q.each:
				for n := range of {
					pod.Namespace, pod.Name = pods.Namespace(i+n), pods.Name(i+n)
					q.add(all[q.name], &pod)
				}
			default:
				one := answer{}
				q.add(one, &pod)
				for what, value := range one {
					all[q.name][what] += float64(of) * value
				}
			}
		}
	}
	for _, q := range questions {
		if q.end != nil {
			all[q.name] = q.end(all[q.name])
		}
	}
	return all, nil
}

// ask asks each question for the first time, and again.
func (l *large) ask(ctx context.Context, i *informerd) error {
	for _, q := range l.questions {
		logf("question %s", q.name)
		for n := range repeated + againAsked*l.rounds {
			took, err := l.askOne(ctx, i, q)
			if err != nil {
				return fmt.Errorf("question %s: %w", q.name, err)
			}
			if n == 0 {
				l.first[q.name] = append(l.first[q.name], took)
			} else if n >= repeated {
				l.again[q.name] = append(l.again[q.name], took)
			}
		}
	}
	return nil
}

func (l *large) askOne(ctx context.Context, i *informerd, q question) (seconds float64, err error) {
	params := url.Values{}
	for name, value := range q.query {
		params.Set(name, value)
	}
	runtime.GC() // what is left of the answers before would be collected beside this question
	start := time.Now()
	body, err := fetch(ctx, i.http, l.body, i.url+"/v1/resources/pods/objects?"+params.Encode())
	took := time.Since(start).Seconds()
	l.body = body // the next answer needs no other memory
	if err != nil {
		return 0, err
	}
	got, err := q.read(body)
	if err != nil {
		return 0, err
	}
	return took, l.right(q, got, body)
}

// right fails if an answer is not the one that the pods were made for.
func (l *large) right(q question, got answer, text []byte) error {
	if want := l.answers[q.name]; len(want) == 0 || !maps.Equal(want, got) {
		return fmt.Errorf("the answer has %d parts and is not right, of %d: %.300s", len(got), len(want), text)
	}
	return nil
}
