/* SPDX-License-Identifier: Apache-2.0 */
/* An aggregation without data prints nothing with a format, and the empty line without. */
BEGIN
{
	exit(0);
}
END
/0/
{
	@a = count();
}
END
{
	printa("%@d\n", @a);
	printa(@a);
	printf("end\n");
}
/* output:

end

*/
