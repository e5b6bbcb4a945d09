/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 2: the statements behind the branch still run. */
BEGIN
{
	if (1) {
		exit(0);
	}
	printf("behind\n");
}
END
{
	printf("end\n");
}
/* output:
behind
end

*/
