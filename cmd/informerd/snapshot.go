package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cmd/informerd/collect"
	"github.com/informerd/informerd/persist"
)

func newSnapshotCommand() *cobra.Command {
	var keys keyFile
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Look into the snapshot file",
		Long: `Look into the snapshot file, which lets informerd resume its watches after a
restart instead of listing everything again.

The file belongs to one process at a time: stop informerd first. It is safe to
delete: informerd then starts cold.

An encrypted file needs the key file that snapshot.encryption.keyFile names.`,
		// A file may hold very much.
		PersistentPreRun: func(*cobra.Command, []string) { collect.AsUsual() },
	}
	cmd.PersistentFlags().StringVar((*string)(&keys), "key-file", "", "the `file` with the key that the snapshot is encrypted with")
	_ = cmd.MarkPersistentFlagFilename("key-file")
	cmd.AddCommand(newSnapshotInfoCommand(&keys), newSnapshotVerifyCommand(&keys), newSnapshotCompactCommand())
	return cmd
}

// keyFile is the path of a key file, or "".
type keyFile string

// read returns nil if there is none.
func (f keyFile) read() (*persist.Keyring, error) {
	if f == "" {
		return nil, nil
	}
	return persist.ReadKeys(string(f))
}

func newSnapshotInfoCommand(keys *keyFile) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "info FILE",
		Short: "Show what a snapshot file holds",
		Long: `Show what a snapshot file holds: for each resource how many objects and bytes,
the resourceVersion its watch would resume from, and when it was saved.

Of an encrypted file the name of its key is shown, and without --key-file nothing
of what it holds. The file is only read.`,
		Example: "  informerd snapshot info data/informerd.db\n  informerd snapshot info data/informerd.db -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output %q: want table or json", output)
			}
			cmd.SilenceUsage = true
			ring, err := keys.read()
			if err != nil {
				return err
			}
			info, err := persist.Info(args[0], ring)
			if err != nil {
				return err
			}
			if output == "json" {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(info)
			}
			printSnapshotFile(cmd.OutOrStdout(), info)
			if info.EncryptionKey != "" && ring == nil {
				return nil
			}
			return printSnapshotResources(cmd.OutOrStdout(), info)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func newSnapshotVerifyCommand(keys *keyFile) *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE",
		Short: "Check every page and every object of a snapshot file",
		Long: `Check every page and every object of a snapshot file, and name what is damaged.
The exit code is 1 if anything is.

The file is only read. Nothing needs to be repaired by hand: at its next start
informerd leaves out what is damaged and lists those resources again.`,
		Example: "  informerd snapshot verify data/informerd.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.SilenceUsage = true
			ring, err := keys.read()
			if err != nil {
				return err
			}
			report, err := persist.Verify(args[0], ring)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			for _, p := range report.Problems {
				fmt.Fprintln(out, p)
			}
			if n := len(report.Problems); n > 0 {
				return fmt.Errorf("%s is damaged: problems found: %d", args[0], n)
			}
			_, err = fmt.Fprintf(out, "%s is sound: %d objects of %d resources, %d entries of %d ledgers, %s\n",
				args[0], report.Objects, report.Resources, report.Entries, report.Ledgers, byteSize(report.FileBytes))
			return err
		},
	}
}

func newSnapshotCompactCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compact FILE",
		Short: "Rewrite a snapshot file without its free space",
		Long: `Rewrite a snapshot file without its free space. The file is replaced in one step
once its copy is complete, so there must be room for both.

There is seldom need: informerd does the same at its start when more than half
of a large file is free. An encrypted file stays as it is encrypted, and needs no
key for this.`,
		Example: "  informerd snapshot compact data/informerd.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.SilenceUsage = true
			before, after, err := persist.Compact(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, was %s\n", args[0], byteSize(after), byteSize(before))
			return err
		},
	}
}

func printSnapshotFile(out io.Writer, info *persist.FileInfo) {
	fmt.Fprintf(out, "File:       %s\nFormat:     %d\nSize:       %s, %s free\n",
		info.Path, info.Format, byteSize(info.FileBytes), byteSize(info.FreeBytes))
	if info.EncryptionKey != "" {
		fmt.Fprintf(out, "Encrypted:  with the key %q; --key-file shows what it holds\n", info.EncryptionKey)
	}
}

func printSnapshotResources(out io.Writer, info *persist.FileInfo) error {
	fmt.Fprintf(out, "Documents:  %d\n", info.Documents)
	for _, l := range info.Ledgers {
		fmt.Fprintf(out, "Ledger:     %s\n", ledger(l))
	}
	if j := info.Journal; j != nil {
		fmt.Fprintf(out, "Journal:    %s\n", journal(j))
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tRESOURCE\tVERSION\tOBJECTS\tBYTES\tDICTIONARIES\tRESOURCEVERSION\tSAVED AT")
	for _, r := range info.Resources {
		name := schema.GroupResource{Group: r.Group, Resource: r.Resource}.String()
		if r.Error != "" {
			fmt.Fprintf(w, "%s\t%s\t%s\tdamaged: %s\n", dash(r.Cluster), name, r.Version, r.Error)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", dash(r.Cluster), name, r.Version, r.Objects,
			byteSize(r.Bytes), dictionaries(&r), versions(r.ResourceVersions), r.SavedAt.Format(time.RFC3339))
	}
	return w.Flush()
}

// journal describes what is beside the file.
func journal(j *persist.JournalInfo) string {
	if j.Error != "" {
		return "damaged: " + j.Error
	}
	return fmt.Sprintf("%d entries of %d ledgers, to be entered at the next start", j.Entries, j.Ledgers)
}

// ledger describes what is saved of one handler.
func ledger(l persist.LedgerInfo) string {
	if l.Error != "" {
		return fmt.Sprintf("%s, damaged: %s", l.Name, l.Error)
	}
	return fmt.Sprintf("%s, %d entries, %s", l.Name, l.Entries, byteSize(l.Bytes))
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// dictionaries lists them as id:size, and then all templates as one.
func dictionaries(r *persist.ResourceInfo) string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(r.Dictionaries)) {
		all = append(all, fmt.Sprintf("%d:%s", id, byteSize(int64(r.Dictionaries[id]))))
	}
	if r.Templates > 0 {
		all = append(all, fmt.Sprintf("%d templates:%s", r.Templates, byteSize(r.TemplateBytes)))
	}
	return dash(strings.Join(all, ","))
}

// versions is the resourceVersion, or namespace=resourceVersion of each source
// where there are several.
func versions(by map[string]string) string {
	var all []string
	for _, namespace := range slices.Sorted(maps.Keys(by)) {
		version := by[namespace]
		if namespace != "" {
			version = namespace + "=" + version
		}
		all = append(all, version)
	}
	return dash(strings.Join(all, ","))
}

func byteSize(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprintf("%dB", n)
}
