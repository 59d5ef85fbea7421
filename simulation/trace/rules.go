package trace

import (
	"fmt"
	"slices"
	"strings"
)

// rule is one way in which a record is mended; an index of rules.
type rule int

const (
	brokenRow rule = iota
	joinedRow
	joinedFields
	unknownState
	neverStarted
	noStart
	notEnded
	steps
	hetero
	decimals
	extraFields
	beforeStart
	zeroRun
	noProcessors
	oneProcessor
	noEstimate
	runOverEstimate
	runOverLimit
	tooLong
	tooLarge
	unevenHosts
	durationsDiffer
	badText
	badName
	idReused
	outOfOrder
	unmapped
	ruleCount
)

// Rule is one way in which records are mended, unless it is refused.
type Rule struct {
	// Name is what the flag that refuses it has.
	Name string
	// Found says what is wrong with a record, Done what is made of it, and Remedy what
	// its owner can do about it instead.
	Found, Done, Remedy string
}

var rules = [ruleCount]Rule{
	brokenRow:       {"broken-row", "the record cannot be read", "left out", "write the record anew, or remove it"},
	joinedRow:       {"joined-row", "the record goes over several lines, or has the separator in a text", "put together again", "leave job names and command lines out of the listing"},
	joinedFields:    {"joined-fields", "two numbers stand without a blank between them", "taken apart", "write a blank between them"},
	unknownState:    {"unknown-state", "there is no such state of a job", "taken by its times", "use a state of the batch system"},
	neverStarted:    {"never-started", "the job never started", "left out", "list only jobs that ran"},
	noStart:         {"no-start", "there is no start time, though the job ran", "worked out from its end and run time", "write when the job started"},
	notEnded:        {"not-ended", "the job had not ended", "taken as if it ended then", "list only jobs that have ended"},
	steps:           {"steps", "the record is a part of a job", "left out: the job has a record of its own", "list jobs without their steps, as `sacct -X` does"},
	hetero:          {"hetero", "the record is a component of a heterogeneous job", "taken as a job of its own", "remove it, or take the components as jobs"},
	decimals:        {"decimals", "the number has decimals", "cut off", "write whole numbers"},
	extraFields:     {"extra-fields", "there are more than 18 fields", "the others not read", "write the 18 fields of the Standard Workload Format"},
	beforeStart:     {"before-start", "the job came before the log began", "taken as one second long, at the first second", "begin the log with its first job"},
	zeroRun:         {"zero-run", "the run time is 0 or not known", "taken as one second", "write how long the job ran, or remove it"},
	noProcessors:    {"no-processors", "the job got no processors, or it is not known how many", "taken as one processor for one second", "write how many the job got, or remove it"},
	oneProcessor:    {"one-processor", "it is not known how many processors the job got", "taken as one", "write how many the job got"},
	noEstimate:      {"no-estimate", "there is no time limit", "its run time taken as such", "write the time limit that the job asked for"},
	runOverEstimate: {"run-over-estimate", "the job ran longer than its time limit", "ended at the limit, and planned with the longer time", "write a limit that is not less than the run time"},
	runOverLimit:    {"run-over-limit", "the job ran longer than its time limit", "the limit raised to the run time", "write a limit that is not less than the run time"},
	tooLong:         {"too-long", "the time is longer than ten years", "cut to ten years", "write less"},
	tooLarge:        {"too-large", "the job had more processors than there are now", "cut to those that there are", "remove the job, or use a larger cluster"},
	unevenHosts:     {"uneven-hosts", "the processors do not divide evenly among the hosts", "rounded up, to the same on each", "give the job the same number on each host"},
	durationsDiffer: {"durations-differ", "the tokens of the job are held for different times", "all held for the longest", "give one duration"},
	badText:         {"bad-text", "a part of the record is not understood", "taken as if it was not there", "write it as the batch system does"},
	badName:         {"bad-name", "the name is not valid here", "other signs replaced by _", "use 1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit"},
	idReused:        {"id-reused", "another job has the same number", "taken as a job of its own", "give each job a number of its own"},
	outOfOrder:      {"out-of-order", "the job stands after one that came later", "put in its place", "order the jobs by their arrival"},
	unmapped:        {"unmapped", "no rule of the mapping is for the job", "only the mapping's defaults used", "add a rule that matches it"},
}

// Rules answers all the rules, in their order.
func Rules() []Rule { return slices.Clone(rules[:]) }

// ruleOf answers the rule of that name.
func ruleOf(name string) (rule, error) {
	var names []string
	for i, r := range rules {
		if r.Name == name {
			return rule(i), nil
		}
		names = append(names, r.Name)
	}
	return 0, fmt.Errorf("there is no rule %q; use one of %s", name, strings.Join(names, ", "))
}
