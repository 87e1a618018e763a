package control_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/kmsharness/kmsharness/fakeplugin/control"
	"github.com/kmsharness/kmsharness/fakeplugin/control/client"
	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/internal/host"
)

func TestBadRequestsGetOneClearLine(t *testing.T) {
	h := newAPI(t).Handler()
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		says               string
	}{
		"an unknown path":       {"GET", "/v2/status", "", 404, "see /openapi.yaml"},
		"an unknown method":     {"PATCH", "/v1/status", "", 405, "but GET"},
		"no JSON":               {"POST", "/v1/faults", "hang", 400, "not what is expected"},
		"an unknown field":      {"POST", "/v1/faults", `{"name":"hang","colour":"red"}`, 400, `unknown field \"colour\"`},
		"two values":            {"POST", "/v1/faults", `{"name":"hang"}{}`, 400, "more than one JSON value"},
		"a body too large":      {"POST", "/v1/faults", `{"name":"` + strings.Repeat("x", httpjson.MaxBody) + `"}`, 413, "larger than 65536"},
		"an unknown fault":      {"POST", "/v1/faults", `{"name":"hnag"}`, 422, `did you mean \"hang\"?`},
		"no fault at all":       {"POST", "/v1/faults", "", 422, "there is no fault"},
		"an unknown parameter":  {"POST", "/v1/faults", `{"name":"delay","params":{"bye":"1s"}}`, 422, `did you mean \"by\"?`},
		"a wrong type":          {"POST", "/v1/faults", `{"name":"delay","params":{"by":["1s"]}}`, 422, "a duration"},
		"an unknown id":         {"DELETE", "/v1/faults/f9", "", 404, `id \"f9\"`},
		"an unknown name":       {"DELETE", "/v1/faults?name=hnag", "", 422, `did you mean \"hang\"?`},
		"a bad journal number":  {"GET", "/v1/journal?after=-1", "", 400, "number of an entry"},
		"a bad limit":           {"GET", "/v1/journal?limit=0", "", 400, "a number from 1"},
		"a bad follow":          {"GET", "/v1/journal?follow=perhaps", "", 400, "true or false"},
		"a bad method":          {"GET", "/v1/journal?method=Ping", "", 400, "expected Status"},
		"a negative reuse":      {"POST", "/v1/rotate", `{"reuse":-1}`, 422, "from 1"},
		"a version to come":     {"POST", "/v1/rotate", `{"reuse":7}`, 409, "there is no KEK version 7"},
		"no lag":                {"PUT", "/v1/notice-lag", "", 422, "a duration such as 30s"},
		"a lag beyond the end":  {"PUT", "/v1/notice-lag", `{"lag":"25h"}`, 422, "24h0m0s"},
		"a lag that runs ahead": {"PUT", "/v1/notice-lag", `{"lag":"-1s"}`, 422, "from 0s"},
	} {
		status, answer := ask(h, c.method, c.path, c.body)
		if status != c.status || !strings.Contains(answer, c.says) || strings.Count(answer, "\n") != 1 || !json.Valid([]byte(answer)) {
			t.Errorf("%s: %d %.300s, want %d and %q", name, status, answer, c.status, c.says)
		}
	}
}

func TestToken(t *testing.T) {
	g, api := NewWithT(t), newAPI(t)
	api.Token = "s3cr3t"
	for _, token := range []string{"", "wrong"} {
		err := connect(t, api, token).Healthy(context.Background())
		var p *httpjson.Problem
		g.Expect(err).To(BeAssignableToTypeOf(p))
		g.Expect(err.(*httpjson.Problem).Status).To(Equal(http.StatusUnauthorized))
	}
	g.Expect(connect(t, api, "s3cr3t").Healthy(context.Background())).To(Succeed())
}

func TestFaultsComeAndGo(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	c := connect(t, newAPI(t), "")
	first, err := c.Inject(ctx, "hang", map[string]any{"method": "Status", "for": "1h"})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.Inject(ctx, "healthz", nil)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.Inject(ctx, "healthz", nil)
	g.Expect(err).NotTo(HaveOccurred())
	faults, err := c.Faults(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(faults).To(HaveLen(3))
	g.Expect(faults[0].Fault.Params()).To(HaveKeyWithValue("for", "1h0m0s"))
	g.Expect(c.Release(ctx, first.ID)).To(Succeed())
	g.Expect(c.Release(ctx, first.ID)).To(MatchError(ContainSubstring("no fault in force")))
	g.Expect(c.ReleaseName(ctx, "healthz")).To(HaveLen(2))
	g.Expect(c.ReleaseAll(ctx)).To(BeEmpty())
	status, err := c.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]string{status.Node, status.KeyID, string(status.Socket), status.Problem}).To(Equal([]string{"cp-1", "1", "served", ""}))
	g.Expect(status.Faults).To(BeEmpty())
}

func TestRotateAndNotice(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	c := connect(t, newAPI(t), "")
	g.Expect(c.SetNoticeLag(ctx, time.Hour)).To(Succeed())
	before, err := c.Keys(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	second, err := c.Rotate(ctx, control.RotateRequest{})
	g.Expect(err).NotTo(HaveOccurred())
	still, err := c.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(still.KEKID).To(Equal(before.Noticed.ID))
	g.Expect(still.NoticeLag).To(Equal("1h0m0s"))
	noticed, err := c.Notice(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(noticed.Noticed.ID).To(Equal(second.ID))
	third, err := c.Rotate(ctx, control.RotateRequest{Notice: true})
	g.Expect(err).NotTo(HaveOccurred())
	now, err := c.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(now.KEKID).To(Equal(third.ID))
	again, err := c.Rotate(ctx, control.RotateRequest{Reuse: 1, Notice: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.ID).To(Equal(before.Noticed.ID))
}

func TestJournalIsFollowed(t *testing.T) {
	g, api := NewWithT(t), newAPI(t)
	c := connect(t, api, "")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	api.Journal.Append(journal.Call{Method: "Encrypt", UID: "u-1"})
	api.Journal.Append(journal.Call{Method: "Status"})
	body, err := c.Journal(ctx, journal.Query{Follow: true}, "Encrypt+Decrypt")
	g.Expect(err).NotTo(HaveOccurred())
	defer body.Close()
	lines := bufio.NewScanner(body)
	for _, uid := range []string{"u-1", "u-2"} {
		if uid == "u-2" {
			api.Journal.Append(journal.Call{Method: "Decrypt", UID: uid})
		}
		g.Expect(lines.Scan()).To(BeTrue())
		var call journal.Call
		g.Expect(json.Unmarshal(lines.Bytes(), &call)).To(Succeed())
		g.Expect(call.UID).To(Equal(uid))
	}
}

func TestClientNeedsAnEndpoint(t *testing.T) {
	_, err := client.New(host.Host{}, "/run/control.sock", "")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("unix:///PATH")))
}

// FuzzHandler: whatever is sent, the answer is JSON (or the description), is never the server's own fault, and the
// plugin can still be told to be good.
func FuzzHandler(f *testing.F) {
	for _, seed := range [][3]string{
		{"POST", "/v1/faults", `{"name":"delay","params":{"by":"1ms","probability":0.5}}`},
		{"POST", "/v1/faults", `{"name":"healthz","params":{"text":"\u0000\ud800"}}`},
		{"DELETE", "/v1/faults?name=hang", ""},
		{"DELETE", "/v1/faults/f1", ""},
		{"GET", "/v1/journal?after=1&limit=2&method=all", ""},
		{"POST", "/v1/rotate", `{"reuse":1,"notice":true}`},
		{"PUT", "/v1/notice-lag", `{"lag":"1s"}`},
		{"POST", "/v1/notice", "{}"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	h := newAPI(f).Handler()
	f.Fuzz(func(t *testing.T, method, path, body string) {
		if !possible(method, path) {
			t.Skip()
		}
		status, answer := ask(h, method, path, body)
		if status >= 500 || status < 200 {
			t.Errorf("%s %q %q: %d %s", method, path, body, status, answer)
		}
		if status >= 400 && !json.Valid([]byte(answer)) {
			t.Errorf("%s %q %q: the error is not JSON: %q", method, path, body, answer)
		}
		if status, answer := ask(h, "DELETE", "/v1/faults", ""); status != http.StatusOK {
			t.Errorf("the faults cannot be released: %d %s", status, answer)
		}
	})
}

// possible leaves out what an HTTP server never hands to a handler, and a journal that is followed for ever.
func possible(method, path string) bool {
	u, err := url.ParseRequestURI(path)
	return err == nil && strings.HasPrefix(path, "/") && !strings.ContainsAny(path, " #") &&
		method != "" && method != http.MethodConnect && isToken(method) && u.Query().Get("follow") == ""
}

func isToken(method string) bool {
	return strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

func TestProfile(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	c := connect(t, newAPI(t), "")
	before, err := c.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.SetProfile(ctx, "aws")).To(Succeed())
	st, err := c.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(st.Profile).To(Equal("aws"))
	g.Expect(st.KEKID).To(HavePrefix("arn:aws:kms:"))
	_, err = c.Inject(ctx, "provider-failure", map[string]any{"failure": "credentials-expired"})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.Inject(ctx, "provider-failure", map[string]any{"failure": "session-lost"})
	g.Expect(err).To(MatchError(ContainSubstring("the profile aws has no failure")))
	g.Expect(c.SetProfile(ctx, "ibm")).To(MatchError(ContainSubstring("there are: aws, azure")))
	g.Expect(c.SetProfile(ctx, "")).To(Succeed())
	st, err = c.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(st.KEKID).To(Equal(before.KEKID))
	g.Expect(st.Profile).To(BeEmpty())
}
