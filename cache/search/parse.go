package search

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/informerd/informerd/cache"
)

const (
	// maxQuestion bounds the length of a question in bytes.
	maxQuestion = 512
	// maxTerms bounds its words.
	maxTerms = 12
)

// Term is one word of a question: a text, in lower case, that an object must
// have in the field.
type Term struct {
	Field Field
	Text  string
}

// Parse reads a question: words, and field:word, separated by white space. What
// is in double quotes is one word and never a field; a backslash takes the next
// character as it is. A word before a colon that is no field is part of the word
// (system:node, web:1.2). Its errors name the column, counted from 1.
func Parse(question string) ([]Term, error) {
	p := parser{s: question}
	if len(question) > maxQuestion {
		return nil, p.errorf(maxQuestion, "longer than %d bytes", maxQuestion)
	}
	if !utf8.ValidString(question) {
		return nil, p.errorf(0, "not valid UTF-8")
	}
	var terms []Term
	for p.skipSpace(); p.i < len(p.s); p.skipSpace() {
		at := p.i
		t, err := p.term()
		if err != nil {
			return nil, err
		}
		if len(terms) == maxTerms {
			return nil, p.errorf(at, "more than %d words", maxTerms)
		}
		terms = append(terms, t)
	}
	if len(terms) == 0 {
		return nil, p.errorf(0, "no word to look for; write for example: web kind:deployment ns:shop label:app=web image:nginx")
	}
	return terms, nil
}

// parser reads s from i on.
type parser struct {
	s string
	i int
}

func (p *parser) errorf(at int, format string, args ...any) error {
	return &cache.InvalidError{Parameter: "q", Message: fmt.Sprintf("column %d: %s", at+1, fmt.Sprintf(format, args...))}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func (p *parser) skipSpace() {
	for p.i < len(p.s) && isSpace(p.s[p.i]) {
		p.i++
	}
}

func (p *parser) term() (Term, error) {
	start := p.i
	var t Term
	if key, _, ok := strings.Cut(p.s[p.i:], ":"); ok {
		if f, known := keys[strings.ToLower(key)]; known {
			t.Field = f
			p.i += len(key) + 1
		}
	}
	text, err := p.word()
	if err != nil {
		return t, err
	}
	t.Text = strings.ToLower(text)
	if t.Field == Kind || t.Field == Namespace {
		if t.Text == "" {
			return t, p.errorf(p.i, "%s names a %s; none is given", p.s[start:p.i], t.Field)
		}
		if _, err := path.Match(t.Text, ""); err != nil {
			return t, p.errorf(start, "%s is not a glob", p.s[start:p.i])
		}
		return t, nil
	}
	t.Text = strings.TrimLeftFunc(t.Text, func(r rune) bool { return r < utf8.RuneSelf && !isWord(byte(r)) })
	if t.Text == "" {
		return t, p.errorf(start, "%q has no letter or digit to look for", p.s[start:p.i])
	}
	return t, nil
}

// word reads up to white space, with quotes taken off.
func (p *parser) word() (string, error) {
	var b strings.Builder
	quote := -1
	for ; p.i < len(p.s); p.i++ {
		switch c := p.s[p.i]; {
		case c == '\\':
			if p.i++; p.i == len(p.s) {
				return "", p.errorf(p.i-1, "nothing after the backslash")
			}
			b.WriteByte(p.s[p.i])
		case c == '"' && quote < 0:
			quote = p.i
		case c == '"':
			quote = -1
		case quote < 0 && isSpace(c):
			return b.String(), nil
		default:
			b.WriteByte(c)
		}
	}
	if quote >= 0 {
		return "", p.errorf(quote, "the quote is not closed")
	}
	return b.String(), nil
}
