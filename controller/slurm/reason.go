package slurm

import (
	"fmt"
	"strings"
)

// Meaning is what one of Slurm's reasons for which a job waits means for us.
type Meaning struct {
	// Hosts and Tokens tell whether more of them may let the job start; where neither may, it raises no demand.
	Hosts, Tokens bool
	// Itself tells that the job may start without anyone's doing.
	Itself bool
	// Unlooked tells that Slurm has not said anything yet.
	Unlooked bool
	// Partition tells that it may be the partition's own limits, whatever hosts come, and not only that it has too few now.
	Partition bool
	// Why says it, to go on a sentence, as in "its user holds it".
	Why string
}

// Barred tells whether neither more hosts nor more tokens would let the job start.
func (m Meaning) Barred() bool { return !m.Hosts && !m.Tokens }

// meanings are Slurm's reasons from 22.05 to 25.11. A name with a comma in it is a
// variant of the one before the comma, and goes before it.
var meanings = map[string]Meaning{}

func mean(m Meaning, names string) {
	for name := range strings.FieldsSeq(names) {
		meanings[strings.ReplaceAll(name, "_", " ")] = m
	}
}

func init() {
	mean(Meaning{Hosts: true, Tokens: true, Unlooked: true, Why: "Slurm has not looked at it yet"}, "None WaitingForScheduling")
	mean(Meaning{Hosts: true, Tokens: true, Why: "jobs of higher priority go first"}, "Priority")
	mean(Meaning{Hosts: true, Tokens: true, Why: "it waits for hosts"}, "Resources")
	mean(Meaning{Tokens: true, Hosts: true, Why: "it waits for tokens"}, "Licenses")
	mean(Meaning{Hosts: true, Tokens: true, Why: "the hosts that would do are taken, reserved, or not there"}, "ReqNodeNotAvail")
	mean(Meaning{Hosts: true, Why: "the hosts that would do are down, drained or reserved"},
		"Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions Nodes_required_for_job_are_DOWN")
	itself()
	limits()
	others()
}

// itself are reasons that pass without anyone's doing.
func itself() {
	mean(Meaning{Itself: true, Why: "a reservation for maintenance keeps it from starting"}, "ReqNodeNotAvail,_Reserved_for_maintenance")
	mean(Meaning{Itself: true, Why: "it waits for another job"}, "Dependency")
	mean(Meaning{Itself: true, Why: "its begin time has not come"}, "BeginTime")
	mean(Meaning{Itself: true, Why: "as many elements of its array run as may at once"}, "JobArrayTaskLimit")
	mean(Meaning{Itself: true, Why: "it is being cleaned up after, or has just been requeued"}, "Cleaning")
	mean(Meaning{Itself: true, Why: "the prolog of slurmctld is running for it"}, "Prolog")
	mean(Meaning{Itself: true, Why: "it waits for its reservation to begin, or for room in it"}, "Reservation")
	mean(Meaning{Itself: true, Why: "it waits for burst buffers"}, "BurstBufferResources BurstBufferStageIn")
	mean(Meaning{Itself: true, Why: "another cluster of the federation has it in hand"}, "FedJobLock")
	mean(Meaning{Itself: true, Why: "the cluster's power budget keeps it from starting"}, "PowerNotAvail PowerReserved")
}

// limits are reasons of policy: those that pass as other jobs end, and those of the job's own size.
func limits() {
	mean(Meaning{Itself: true, Why: "the jobs of its account are at a limit of accounting"}, `
		AssociationJobLimit AssociationResourceLimit AssociationTimeLimit AccountingPolicy AssocMaxJobsLimit AssocMaxSubmitJobLimit
		AssocGrpCpuLimit AssocGrpCPUMinutesLimit AssocGrpCPURunMinutesLimit AssocGrpJobsLimit AssocGrpMemLimit AssocGrpMemMinutes
		AssocGrpMemRunMinutes AssocGrpNodeLimit AssocGrpNodeMinutes AssocGrpNodeRunMinutes AssocGrpSubmitJobsLimit AssocGrpWallLimit
		AssocGrpEnergy AssocGrpEnergyMinutes AssocGrpEnergyRunMinutes AssocGrpGRES AssocGrpGRESMinutes AssocGrpGRESRunMinutes
		AssocGrpLicense AssocGrpLicenseMinutes AssocGrpLicenseRunMinutes AssocGrpBB AssocGrpBBMinutes AssocGrpBBRunMinutes
		AssocGrpBilling AssocGrpBillingMinutes AssocGrpBillingRunMinutes AssocGrpUnknown AssocGrpUnknownMinutes AssocGrpUnknownRunMinutes
		MaxBBPerAccount MaxBillingPerAccount MaxCpuPerAccount MaxEnergyPerAccount MaxGRESPerAccount MaxJobsPerAccount MaxLicensePerAccount
		MaxMemoryPerAccount MaxNodePerAccount MaxSubmitJobsPerAccount MaxUnknownPerAccount`)
	mean(Meaning{Itself: true, Why: "the jobs of its quality of service, or of its user there, are at a limit"}, `
		QOSJobLimit QOSResourceLimit QOSTimeLimit QOSUsageThreshold
		QOSGrpCpuLimit QOSGrpCPUMinutesLimit QOSGrpCPURunMinutesLimit QOSGrpJobsLimit QOSGrpMemLimit QOSGrpMemoryMinutes
		QOSGrpMemoryRunMinutes QOSGrpNodeLimit QOSGrpNodeMinutes QOSGrpNodeRunMinutes QOSGrpSubmitJobsLimit QOSGrpWallLimit
		QOSGrpEnergy QOSGrpEnergyMinutes QOSGrpEnergyRunMinutes QOSGrpGRES QOSGrpGRESMinutes QOSGrpGRESRunMinutes
		QOSGrpLicense QOSGrpLicenseMinutes QOSGrpLicenseRunMinutes QOSGrpBB QOSGrpBBMinutes QOSGrpBBRunMinutes
		QOSGrpBilling QOSGrpBillingMinutes QOSGrpBillingRunMinutes QOSGrpUnknown QOSGrpUnknownMinutes QOSGrpUnknownRunMinutes
		QOSMaxCpuPerUserLimit QOSMaxJobsPerUserLimit QOSMaxNodePerUserLimit QOSMaxSubmitJobPerUserLimit QOSMaxMemoryPerUser
		QOSMaxEnergyPerUser QOSMaxGRESPerUser QOSMaxLicensePerUser QOSMaxBBPerUser QOSMaxBillingPerUser QOSMaxUnknownPerUser`)
	mean(Meaning{Why: "it asks for more than a limit of its account, or of its quality of service, lets one job have; ask for less, or have the limit raised"}, `
		AssocMaxCpuPerJobLimit AssocMaxCpuMinutesPerJobLimit AssocMaxCpuPerNode AssocMaxNodePerJobLimit AssocMaxNodeMinutesPerJob
		AssocMaxWallDurationPerJobLimit AssocMaxMemPerJob AssocMaxMemPerNode AssocMaxMemMinutesPerJob AssocMaxEnergyPerJob
		AssocMaxEnergyPerNode AssocMaxEnergyMinutesPerJob AssocMaxGRESPerJob AssocMaxGRESPerNode AssocMaxGRESMinutesPerJob
		AssocMaxLicensePerJob AssocMaxLicenseMinutesPerJob AssocMaxBBPerJob AssocMaxBBPerNode AssocMaxBBMinutesPerJob
		AssocMaxBillingPerJob AssocMaxBillingPerNode AssocMaxBillingMinutesPerJob AssocMaxUnknownPerJob AssocMaxUnknownPerNode
		AssocMaxUnknownMinutesPerJob
		QOSMaxCpuPerJobLimit QOSMaxCpuMinutesPerJobLimit QOSMaxCpuPerNode QOSMaxNodePerJobLimit QOSMaxNodeMinutesPerJob
		QOSMaxWallDurationPerJobLimit QOSMaxMemoryPerJob QOSMaxMemoryPerNode QOSMaxMemoryMinutesPerJob QOSMaxEnergyPerJob
		QOSMaxEnergyPerNode QOSMaxEnergyMinutesPerJob QOSMaxGRESPerJob QOSMaxGRESPerNode QOSMaxGRESMinutesPerJob QOSMaxLicensePerJob
		QOSMaxLicenseMinutesPerJob QOSMaxBBPerJob QOSMaxBBPerNode QOSMaxBBMinutesPerJob QOSMaxBillingPerJob QOSMaxBillingPerNode
		QOSMaxBillingMinutesPerJob QOSMaxUnknownPerJob QOSMaxUnknownPerNode QOSMaxUnknownMinutesPerJob MaxMemPerLimit`)
	mean(Meaning{Why: "it asks for less than its quality of service demands; ask for more"}, `
		QOSMinCpuNotSatisfied QOSMinMemory QOSMinNode QOSMinEnergy QOSMinGRES QOSMinLicense QOSMinBB QOSMinBilling QOSMinUnknown`)
}

// others are reasons that someone has to do something about.
func others() {
	mean(Meaning{Why: "an administrator holds it"}, "JobHeldAdmin")
	mean(Meaning{Why: "its user holds it"}, "JobHeldUser")
	mean(Meaning{Why: "it is held since it was requeued too often or could not be started; release it when the cause is gone"},
		"JobHoldMaxRequeue launch_failed_requeued_held job_requeued_in_held_state SystemFailure JobLaunchFailure")
	mean(Meaning{Why: "a job that it depends on can never end as it would have to"}, "DependencyNeverSatisfied")
	mean(Meaning{Why: "its partition is down or takes no jobs"}, "PartitionDown PartitionInactive")
	mean(Meaning{Why: "it asks for more time than its partition allows"}, "PartitionTimeLimit")
	mean(Meaning{Hosts: true, Partition: true, Why: "it asks for more than its partition has now"}, "PartitionConfig PartitionNodeLimit")
	mean(Meaning{Why: "a node that it was given is down"}, "NodeDown")
	mean(Meaning{Why: "no front end is up"}, "FrontEndDown")
	mean(Meaning{Why: "nothing that Slurm knows can meet what it asks for"}, "BadConstraints Constraints")
	mean(Meaning{Why: "its account or its quality of service does not exist, or is not allowed there"},
		"InvalidAccount InvalidQOS QOSNotAllowed AccountNotAllowed")
	mean(Meaning{Why: "its reservation is gone or cannot be used"}, "ReservationDeleted ReservationInvalid")
	mean(Meaning{Why: "its burst buffer failed"}, "BurstBufferOperation")
	mean(Meaning{Why: "Slurm was told not to try it at once"}, "SchedDefer")
	mean(Meaning{Why: "it has run and ended"}, "NonZeroExitCode RaisedSignal TimeLimit InactiveLimit OutOfMemory DeadLine")
}

// meaningOf tells what a reason means. Of one that is not known nothing is guessed.
func meaningOf(reason string) Meaning {
	plain := strings.Trim(strings.ReplaceAll(reason, "_", " "), "()")
	if plain == "" {
		plain = "None"
	}
	for name := plain; ; {
		if m, ok := meanings[name]; ok {
			return m
		}
		i := strings.LastIndexByte(name, ',')
		if i < 0 {
			return Meaning{Why: fmt.Sprintf("Slurm says %q, which is not known here", reason)}
		}
		name = name[:i]
	}
}
