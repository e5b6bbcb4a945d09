/* SPDX-License-Identifier: Apache-2.0 */
/* What the library defines is stable, also what is made of the kernel's structures. */
/* flags: -e -v -xamin=Stable/Stable/Common */
/* output:

Stability attributes for script SCRIPT:

	Minimum Probe Description Attributes
		Identifier Names: Stable
		Data Semantics:   Stable
		Dependency Class: Common

	Minimum Statement Attributes
		Identifier Names: Stable
		Data Semantics:   Stable
		Dependency Class: Common

*/
BEGIN
{
	x = execname;
	trace(curpsinfo->pr_psargs);
	trace(curlwpsinfo->pr_lwpid);
}
