/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 2: after exit(), later BEGIN clauses do not run, END does. */
BEGIN
{
	printf("first\n");
	exit(0);
}
BEGIN
{
	printf("wrong\n");
}
END
{
	printf("end\n");
}
/* output:
first
end

*/
