package plugin

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type acceptingNoUID struct{}

// AcceptingNoUID lets one call go without a uid, whatever the plugin's options say.
func AcceptingNoUID(ctx context.Context) context.Context {
	return context.WithValue(ctx, acceptingNoUID{}, true)
}

// demandUID refuses a request without a uid, as the mock of the KMS v2 API does, unless the plugin is told to get along with API
// servers of before the uid. The field is optional on the wire: such a request is well formed.
func (p *Plugin) demandUID(ctx context.Context, uid string) error {
	if uid != "" || p.o.UIDOptional || ctx.Value(acceptingNoUID{}) != nil {
		return nil
	}
	return status.Error(codes.InvalidArgument, "uid is required")
}
