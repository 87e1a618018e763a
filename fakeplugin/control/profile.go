package control

import (
	"net/http"

	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/fakeplugin/profile"
)

// setProfile takes the profiles of this repository only: a file of one's own is an argument of the plugin.
func (a API) setProfile(r *http.Request) (any, error) {
	var req Profile
	if err := httpjson.Decode(r, &req); err != nil {
		return nil, err
	}
	if req.Profile == "" {
		return req, a.Instance.SetProfile(nil)
	}
	p, err := profile.Builtin(req.Profile)
	if err != nil {
		return nil, httpjson.Errorf(http.StatusUnprocessableEntity, "%v", err)
	}
	if err := a.Instance.SetProfile(p); err != nil {
		return nil, httpjson.Errorf(http.StatusConflict, "%v", err)
	}
	return req, nil
}
