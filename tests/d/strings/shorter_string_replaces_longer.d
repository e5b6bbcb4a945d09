/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing of the longer string remains. */
BEGIN
{
	a = "a rather long string";
	a = "short";
	@["x", a] = count();
	printf("%s %d %d\n", a, strlen(a), a == "short");
	exit(0);
}
END
{
	printa("%s %s %@d\n", @);
}
/* output:
short 5 1
x short 1

*/
