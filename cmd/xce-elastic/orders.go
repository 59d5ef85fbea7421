package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/starter"
	"xce.internal/elastic/workflows"
)

// dialTemporal connects to Temporal; tests have another in its place.
var dialTemporal = client.DialContext

// dialStarter answers a client of the workflows, and what closes it.
func dialStarter(cmd *cobra.Command) (*starter.Client, func(), error) {
	c, err := load(cmd)
	if err != nil {
		return nil, nil, err
	}
	options, err := temporalOptions(c, logger(c))
	if err != nil {
		return nil, nil, err
	}
	connection, err := dialTemporal(cmd.Context(), options)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to Temporal at %s: %w", options.HostPort, err)
	}
	return starter.New(connection), connection.Close, nil
}

func newHost() *cobra.Command {
	cmd := &cobra.Command{Use: "host", Short: "Say what is to become of a host that a provider made", Args: known, RunE: help}
	cmd.AddCommand(newDrain(), newUndrain(), newHold(), newRelease(), newGone())
	return cmd
}

// ofHost makes a command carry out a wish for a host. The wish is complete once
// the flags are read; done says in words what came of it.
func ofHost(cmd *cobra.Command, kind workflows.HostUpdate, wish func() (workflows.HostOrder, error), done string) *cobra.Command {
	cmd.Args = exactly(1, fmt.Sprintf("xce-elastic host %s small-3", kind))
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		order, err := wish()
		if err != nil {
			return err
		}
		c, err := loadAndConnect(cmd)
		if err != nil {
			return err
		}
		id, err := resolveHost(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		stories, closeStories, err := dialStarter(cmd)
		if err != nil {
			return err
		}
		defer closeStories()
		order.By = whoami()
		state, err := stories.OrderHost(cmd.Context(), id, uuid.NewString(), kind, order)
		if err != nil {
			return err
		}
		answer := map[string]string{"host": id, "state": state}
		return format.print(cmd, answer, func(t *table) { t.row(fmt.Sprintf("host %s %s; it is %s", id, done, state)) })
	}
	return cmd
}

// resolveHost answers the id of the open elastic host of that name or id; the
// last part of an id will do, where no host is called so.
func resolveHost(ctx context.Context, c *api.Client, name string) (string, error) {
	rows, err := c.ElasticHosts(ctx, false)
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(rows, func(h cluster.ElasticHost) bool { return h.ID == name || h.Name == name }); i >= 0 {
		return rows[i].ID, nil
	}
	st, err := c.Status(ctx)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(st.Hosts, func(h api.HostStatus) bool { return h.Name == name && h.ID == "" }) {
		return "", fmt.Errorf("host %s is owned by the cluster: no provider made it or takes it back; stop the agent on it, and it gets no new jobs", name)
	}
	if i := slices.IndexFunc(rows, func(h cluster.ElasticHost) bool { return h.DefaultName() == name }); i >= 0 {
		return rows[i].ID, nil
	}
	return "", fmt.Errorf("there is no open host %q; `xce-elastic hosts` lists them", name)
}

func newDrain() *cobra.Command {
	cmd := &cobra.Command{
		Use: "drain HOST", Short: "Give a host no new jobs, and give it back once it is empty",
		Long: "Give a host no new jobs, and give it back to its provider once no job is on it. Jobs run on as long as they like,\n" +
			"but with --requeue those that still run at the deadline are stopped and wait again.\n" +
			"A host that has not joined yet is given back at once. A drain that is repeated takes over the new deadline.",
		Example: "  xce-elastic host drain small-3 --why \"its disk is failing\"\n  xce-elastic host drain host/small-3 --deadline 10m --requeue",
	}
	deadline := cmd.Flags().String("deadline", "", "by when jobs are to end, from now on, as in 10m")
	requeue := cmd.Flags().Bool("requeue", false, "stop the jobs that still run at the deadline, or at once without one, so that they wait again")
	why := cmd.Flags().String("why", "", "the reason, for the audit record")
	return ofHost(cmd, workflows.UpdateDrain, func() (workflows.HostOrder, error) {
		order := workflows.HostOrder{Why: *why, Requeue: *requeue}
		if *deadline == "" {
			return order, nil
		}
		if err := order.Within.UnmarshalText([]byte(*deadline)); err != nil {
			return order, fmt.Errorf("--deadline: %w; write a length of time such as 10m", err)
		}
		if order.Within < 0 {
			return order, fmt.Errorf("--deadline %s: it is negative; write a length of time such as 10m", *deadline)
		}
		return order, nil
	}, "gets no new jobs")
}

// plainOrder is a wish without more to it.
func plainOrder() (workflows.HostOrder, error) { return workflows.HostOrder{}, nil }

func newUndrain() *cobra.Command {
	cmd := &cobra.Command{Use: "undrain HOST", Short: "Open a host that drains to new jobs again"}
	return ofHost(cmd, workflows.UpdateUndrain, plainOrder, "gets jobs again")
}

func newHold() *cobra.Command {
	cmd := &cobra.Command{
		Use: "hold HOST", Short: "Keep a host, idle or not, until it is released",
		Long:    "Keep a host, idle or not, until it is released. It gets jobs as before; only its provider can take it back.",
		Example: "  xce-elastic host hold small-3 --why \"looking at a crash\"",
	}
	why := cmd.Flags().String("why", "", "the reason, which others are told")
	_ = cmd.MarkFlagRequired("why")
	return ofHost(cmd, workflows.UpdateHold, func() (workflows.HostOrder, error) {
		if *why == "" {
			return workflows.HostOrder{}, errors.New("--why is empty; say why the host is to be kept, so that others know")
		}
		return workflows.HostOrder{Why: *why}, nil
	}, "is kept until `xce-elastic host release`")
}

func newRelease() *cobra.Command {
	cmd := &cobra.Command{Use: "release HOST", Short: "Keep a host no longer: it goes back as others do"}
	return ofHost(cmd, workflows.UpdateRelease, plainOrder, "is not kept any more")
}

func newGone() *cobra.Command {
	cmd := &cobra.Command{
		Use: "gone HOST", Short: "Say that a machine is no more: the jobs on it wait again",
		Long: "Say that the machine of a host is no more, whatever its provider lists: the host is closed, and the jobs on it wait again.\n" +
			"If the machine still lives, these jobs run twice; what the provider still lists of it is given back after a while.",
		Example: "  xce-elastic host gone small-3 --yes",
	}
	yes := cmd.Flags().Bool("yes", false, "the machine is certainly no more")
	return ofHost(cmd, workflows.UpdateGone, func() (workflows.HostOrder, error) {
		if !*yes {
			return workflows.HostOrder{}, errors.New("jobs on the host will wait again, and run twice if its machine still lives; say --yes if it is certainly no more")
		}
		return workflows.HostOrder{}, nil
	}, "is closed, and its jobs wait again")
}

func newProviderBelieve() *cobra.Command {
	cmd := &cobra.Command{
		Use: "believe PROVIDER", Short: "Take the next list of a provider's hosts at its word",
		Long: "Take the next list of a provider's hosts at its word, though it lacks so many of them that it is not believed:\n" +
			"hosts that it lacks are closed, and jobs on them wait again. Do so once you have seen that the machines are gone.",
		Args: exactly(1, "xce-elastic provider believe cloud --yes"),
	}
	yes := cmd.Flags().Bool("yes", false, "the machines that it does not list are certainly no more")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !*yes {
			return errors.New("jobs on hosts that are not listed will wait again, and run twice if their machines still live; say --yes if those are certainly no more")
		}
		stories, done, err := dialStarter(cmd)
		if err != nil {
			return err
		}
		defer done()
		if err := stories.Believe(cmd.Context(), args[0]); err != nil {
			return err
		}
		err = say(cmd.OutOrStdout(), "the next list of %s is taken at its word\n", args[0])
		return err
	}
	return cmd
}

func newProviderRetry() *cobra.Command {
	return &cobra.Command{
		Use: "retry PROVIDER", Short: "Forget a provider's refusals, so that it is asked again at once",
		Long: "Forget what a provider refused, and what its hosts lacked of what their template says, so that it is asked again at once\n" +
			"for what jobs wait for. Do so once you have mended what made it refuse.",
		Args: exactly(1, "xce-elastic provider retry cloud"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadAndConnect(cmd)
			if err != nil {
				return err
			}
			if err := c.RetryProvider(cmd.Context(), args[0]); err != nil {
				return err
			}
			err = say(cmd.OutOrStdout(), "%s is asked again for what jobs wait for\n", args[0])
			return err
		},
	}
}
