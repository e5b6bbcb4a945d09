/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 37: empty buckets between two others are shown. */
BEGIN
{
	@ = quantize(1);
	@ = quantize(100);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
               0 |                                         0        
               1 |@@@@@@@@@@@@@@@@@@@@                     1        
               2 |                                         0        
               4 |                                         0        
               8 |                                         0        
              16 |                                         0        
              32 |                                         0        
              64 |@@@@@@@@@@@@@@@@@@@@                     1        
             128 |                                         0        

*/
