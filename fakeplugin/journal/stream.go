package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
)

// Query selects what a reader wants of a log.
type Query struct {
	After  uint64 // only entries with a higher number
	Limit  int    // at most so many; 0 is all
	Follow bool   // go on with new entries until ctx ends
}

// Stream writes the selected entries to w as JSON lines and calls flush, if not nil, whenever it has nothing more to
// write for now. It returns nil when ctx ends: that is how a follower leaves.
func Stream[T Entry[T]](ctx context.Context, l *Log[T], q Query, keep func(T) bool, w io.Writer, flush func()) error {
	left := q.Limit
	if left <= 0 {
		left = math.MaxInt
	}
	enc := json.NewEncoder(w)
	for left > 0 {
		var entries []T
		entries, q.After = l.After(q.After, math.MaxInt)
		for _, entry := range entries {
			if left == 0 || (keep != nil && !keep(entry)) {
				continue
			}
			if err := enc.Encode(entry); err != nil {
				return fmt.Errorf("stream the journal: %w", err)
			}
			left--
		}
		if flush != nil {
			flush()
		}
		if !q.Follow || l.Wait(ctx, q.After) != nil {
			return nil
		}
	}
	return nil
}

// ParseQuery reads after, limit and follow from a URL's query. Errors are Problems.
func ParseQuery(values url.Values) (q Query, err error) {
	if s := values.Get("after"); s != "" {
		if q.After, err = strconv.ParseUint(s, 10, 64); err != nil {
			return q, httpjson.Errorf(http.StatusBadRequest, "after=%.32q: expected the number of an entry", s)
		}
	}
	if s := values.Get("limit"); s != "" {
		if q.Limit, err = strconv.Atoi(s); err != nil || q.Limit < 1 {
			return q, httpjson.Errorf(http.StatusBadRequest, "limit=%.32q: expected a number from 1", s)
		}
	}
	if s := values.Get("follow"); s != "" {
		if q.Follow, err = strconv.ParseBool(s); err != nil {
			return q, httpjson.Errorf(http.StatusBadRequest, "follow=%.32q: expected true or false", s)
		}
	}
	return q, nil
}

// Values is the inverse of ParseQuery.
func (q Query) Values() url.Values {
	values := url.Values{}
	if q.After > 0 {
		values.Set("after", strconv.FormatUint(q.After, 10))
	}
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Follow {
		values.Set("follow", "true")
	}
	return values
}

// Serve answers r with the log's entries that it asks for and keep (nil: all) lets through.
func Serve[T Entry[T]](w http.ResponseWriter, r *http.Request, l *Log[T], keep func(T) bool) {
	q, err := ParseQuery(r.URL.Query())
	if err != nil {
		httpjson.WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = Stream(r.Context(), l, q, keep, w, func() { _ = flush() }) // a reader that left needs no answer
}
