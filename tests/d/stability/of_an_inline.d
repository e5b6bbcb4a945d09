/* SPDX-License-Identifier: Apache-2.0 */
/* An inline is as stable as its value, unless #pragma D attributes says otherwise. */
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
		Dependency Class: ISA

*/
inline int number = curthread->pid;
inline int declared = getmajor(0);
#pragma D attributes Stable/Stable/ISA declared

BEGIN
{
	trace(number + declared);
}
