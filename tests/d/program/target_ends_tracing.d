/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 10: with -c tracing ends when the command ends. */
/* flags: -q -c /bin/true */
BEGIN
{
	printf("begin %d\n", $target > 1);
}
END
{
	printf("end\n");
}
/* output:
begin 1
end

*/
