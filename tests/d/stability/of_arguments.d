/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments are as stable as their provider says; probes of several providers as the least of them. */
/* flags: -e -v */
/* output:

Stability attributes for script SCRIPT:

	Minimum Probe Description Attributes
		Identifier Names: Private
		Data Semantics:   Private
		Dependency Class: Unknown

	Minimum Statement Attributes
		Identifier Names: Evolving
		Data Semantics:   Evolving
		Dependency Class: ISA

*/
proc:::exit
{
	trace(args[0]);
}
profile:::tick-1s
{
	trace(getmajor(0));
}
