package slurm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"xce.internal/elastic/cluster"
)

// accountFields are what traces are made of. The job's name may have anything in it, so it comes last.
const accountFields = "JobID,JobIDRaw,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,State,NNodes,NCPUS,ReqMem,ReqTRES,AllocTRES," +
	"Partition,QOS,Account,User,WCKey,NodeList,JobName"

// accountTime is how sacct takes times; [Commands] has it take them in UTC.
const accountTime = "2006-01-02T15:04:05"

// Accounts answers what slurmdbd knows of the jobs that waited or ran at some moment
// between two times, as sacct lists it: a head line, then a job a line, with "|" between
// fields and times in seconds. They are those of all users, as far as PrivateData lets
// us see them.
func (c Commands) Accounts(ctx context.Context, since, until cluster.Time) ([]byte, error) {
	out, err := c.Run(ctx, "sacct", "--allusers", "--allocations", "--parsable2", "--format="+accountFields,
		"--starttime="+since.Std().UTC().Format(accountTime), "--endtime="+until.Std().UTC().Format(accountTime))
	if refused := (*Refused)(nil); errors.As(err, &refused) {
		refused.What = "sacct" // the list of columns helps nobody
		switch {
		case refused.Kind == NoDaemon:
			err = fmt.Errorf("%w; slurmdbd does not answer: start it, and see AccountingStorageHost in slurm.conf", err)
		case strings.Contains(refused.Text, "storage is disabled"):
			err = fmt.Errorf("%w; this Slurm keeps no accounts of ended jobs: it needs slurmdbd, and AccountingStorageType=accounting_storage/slurmdbd in slurm.conf", err)
		}
	}
	return out, err
}
