/* SPDX-License-Identifier: Apache-2.0 */
/* -ev compiles, says how stable the program is, and ends: curthread leads into the kernel. */
/* flags: -e -v */
/* output:

Stability attributes for script SCRIPT:

	Minimum Probe Description Attributes
		Identifier Names: Stable
		Data Semantics:   Stable
		Dependency Class: Common

	Minimum Statement Attributes
		Identifier Names: Stable
		Data Semantics:   Private
		Dependency Class: Common

*/
BEGIN
{
	trace(curthread->pid);
}
