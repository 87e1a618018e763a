package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
)

// NewRemoteCommand serves the remote KMS that the plugins of all nodes share.
func NewRemoteCommand() *cobra.Command {
	var listen, file, state, format string
	cmd := &cobra.Command{
		Use:   "remote",
		Short: "Serve the model of the remote KMS that several plugins share",
		Example: `  fake-kms-plugin remote --listen unix:///run/kms.sock --state /run/kms.json
  fake-kms-plugin serve --listen unix:///run/cp-1/kms-1.sock --node cp-1 --remote unix:///run/kms.sock`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if listen == "" {
				return errors.New("--listen is missing: expected unix:///PATH")
			}
			at, err := endpoint.ParseUnix(listen)
			if err != nil {
				return fmt.Errorf("--listen: %w", err)
			}
			log, err := newLog(cmd.ErrOrStderr(), format)
			if err != nil {
				return err
			}
			operations, closeJournal, err := openJournal[remotekms.Operation](file)
			if err != nil {
				return err
			}
			defer closeJournal()
			kms, err := remotekms.New(remotekms.Options{Journal: operations, Log: log, StateFile: state})
			if err != nil {
				return fmt.Errorf("--state: %w", err)
			}
			l, err := endpoint.Listen(at, endpoint.DefaultMode)
			if err != nil {
				return fmt.Errorf("listen at %s: %w", at, err)
			}
			log.Info("serving the remote KMS", "listen", at.String())
			return httpjson.Serve(cmd.Context(), l, remotekms.Handler(kms))
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "endpoint, unix:///PATH or unix:///@NAME (required)")
	cmd.Flags().StringVar(&file, "journal", "", "file that every operation is appended to as a JSON line")
	cmd.Flags().StringVar(&state, "state", "", "file that keys and rules are kept in, so that a killed KMS can go on; they protect test data only")
	cmd.Flags().StringVar(&format, "log-format", "json", "json or text")
	return cmd
}
