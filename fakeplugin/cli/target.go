package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/control/client"
)

// EnvControl names the control API's endpoint where --control is not given.
const EnvControl = "KMSHARNESS_PLUGIN_CONTROL"

// requestTimeout bounds one request to the control API; the plugin answers at once or not at all.
const requestTimeout = 10 * time.Second

// target is the plugin that a verb drives.
type target struct{ endpoint, tokenFile string }

// NewPluginCommand has the verbs that drive a plugin which runs.
func NewPluginCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Watch a fake plugin and make it misbehave",
		Long: `Drive a fake plugin through its control API. Its endpoint is --control, or ` + EnvControl + `.
kmsharness up prints the endpoints of an environment's plugins.`,
	}
	cmd.AddCommand(verbs(&t)...)
	t.register(cmd)
	return cmd
}

func (t *target) register(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&t.endpoint, "control", os.Getenv(EnvControl), "endpoint of the control API: unix:///PATH, unix:///@NAME or tcp://HOST:PORT (default: $"+EnvControl+")")
	cmd.PersistentFlags().StringVar(&t.tokenFile, "control-token-file", "", "file with the control API's bearer token")
}

// verbs are the commands themselves, for a program that has them beside others.
func verbs(t *target) []*cobra.Command {
	return []*cobra.Command{t.status(), t.inject(), t.release(), t.rotate(), t.notice(), t.lag(), t.profile(), t.journal(), t.keys(), t.faults(), NewCatalogueCommand(), NewProfilesCommand(), kmsCommand()}
}

// do connects, asks and closes.
func (t *target) do(cmd *cobra.Command, f func(context.Context, *client.Client) error) error {
	if t.endpoint == "" {
		return errors.New("--control is missing: expected the endpoint of the plugin's control API, or " + EnvControl)
	}
	token, err := readToken(t.tokenFile)
	if err != nil {
		return err
	}
	c, err := client.New(t.endpoint, token)
	if err != nil {
		return fmt.Errorf("--control: %w", err)
	}
	defer c.Close()
	return f(cmd.Context(), c)
}

// ask is do with a deadline, for everything but streams; the answer is printed as JSON.
func (t *target) ask(cmd *cobra.Command, f func(context.Context, *client.Client) (any, error)) error {
	return ask(cmd, t.do, f)
}

// ask has do connect, and gives f requestTimeout for an answer, which is printed as JSON.
func ask[C any](cmd *cobra.Command, do func(*cobra.Command, func(context.Context, C) error) error, f func(context.Context, C) (any, error)) error {
	return do(cmd, func(ctx context.Context, c C) error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		answer, err := f(ctx, c)
		if err != nil {
			return err
		}
		return printJSON(cmd.OutOrStdout(), answer)
	})
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
