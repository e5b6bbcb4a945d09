/* SPDX-License-Identifier: Apache-2.0 */
/* setopt() changes an option while tracing. */
/* flags: -q */
BEGIN
{
	setopt("aggsortrev");
	@["a"] = sum(2);
	@["b"] = sum(1);
	exit(0);
}
END
{
	printa("%s %@d\n", @);
}
/* output:
a 2
b 1

*/
