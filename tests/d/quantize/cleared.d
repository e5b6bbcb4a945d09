/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 38: no data but a key: three buckets with 0. */
BEGIN
{
	@ = quantize(5);
	exit(0);
}
END
{
	clear(@);
}
/* output:


           value  ------------- Distribution ------------- count    
              -1 |                                         0        
               0 |                                         0        
               1 |                                         0        

*/
