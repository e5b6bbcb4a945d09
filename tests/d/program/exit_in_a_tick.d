/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 2: exit() in another probe, then END. */
/* status: 4 */
tick-20ms
{
	printf("tick\n");
	exit(4);
}
END
{
	printf("end\n");
}
/* output:
tick
end

*/
